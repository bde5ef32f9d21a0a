{
  'targets': [
    {
      'target_name': 'millrace',
      'sources': ['native/addon.cc', 'native/mapped_file_glue.cc', 'native/single_glue.cc'],
      'include_dirs': ["<!(node -p \"require('node-addon-api').include_dir\")"],
      # NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS: no error can be thrown while a thread ends, so it is dropped.
      'defines': ['NAPI_VERSION=8', 'NODE_ADDON_API_DISABLE_DEPRECATED', 'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS'],
      # A failed check throws a C++ exception, which unwinds to JavaScript.
      'cflags!': ['-fno-exceptions'],
      'cflags_cc!': ['-fno-exceptions', '-std=gnu++17', '-std=gnu++20'],
      # -O3: -O2 inlines less, and a decision takes 27 ns instead of 17 (10,000 keys, AMD EPYC Zen 4, g++ 12.2, 2026-11-21,
      # `npm run bench -- --case batch`).
      # -ffp-contract=off: a fused multiply-add would round differently from JavaScript.
      'cflags_cc': ['-std=c++20', '-O3', '-Wall', '-Wextra', '-fvisibility=hidden', '-ffp-contract=off'],
      'xcode_settings': {
        'GCC_ENABLE_CPP_EXCEPTIONS': 'YES',
        'GCC_SYMBOLS_PRIVATE_EXTERN': 'YES',
        'GCC_OPTIMIZATION_LEVEL': '3',
        'CLANG_CXX_LANGUAGE_STANDARD': 'c++20',
        'OTHER_CPLUSPLUSFLAGS': ['-ffp-contract=off'],
      },
      'msvs_settings': {
        'VCCLCompilerTool': {'ExceptionHandling': 1, 'AdditionalOptions': ['/std:c++20', '/fp:precise']},
      },
    },
  ],
}
