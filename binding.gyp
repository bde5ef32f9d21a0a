{
  'targets': [
    {
      'target_name': 'millrace',
      'sources': ['native/addon.cc', 'native/mapped_file_glue.cc'],
      'include_dirs': ["<!(node -p \"require('node-addon-api').include_dir\")"],
      'defines': ['NAPI_VERSION=8', 'NODE_ADDON_API_DISABLE_DEPRECATED', 'NAPI_DISABLE_CPP_EXCEPTIONS'],
      'cflags_cc!': ['-std=gnu++17', '-std=gnu++14'],
      'cflags_cc': ['-std=c++20', '-Wall', '-Wextra', '-fvisibility=hidden'],
      'xcode_settings': {
        'CLANG_CXX_LANGUAGE_STANDARD': 'c++20',
        'GCC_SYMBOLS_PRIVATE_EXTERN': 'YES'
      },
      'msvs_settings': { 'VCCLCompilerTool': { 'AdditionalOptions': ['/std:c++20'] } }
    }
  ]
}
