{
  'targets': [
    {
      'target_name': 'millrace',
      'sources': ['native/addon.cc', 'native/mapped_file_glue.cc', 'native/single_glue.cc'],
      'include_dirs': ["<!(node -p \"require('node-addon-api').include_dir\")"],
      # An error that is raised while a thread is being ended can't be thrown any more: it is dropped with the thread.
      'defines': ['NAPI_VERSION=8', 'NODE_ADDON_API_DISABLE_DEPRECATED', 'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS'],
      # Errors are C++ exceptions: a check that fails leaves every function between it and JavaScript.
      'cflags!': ['-fno-exceptions'],
      'cflags_cc!': ['-fno-exceptions', '-std=gnu++17', '-std=gnu++20'],
      # -O3: with what -O2 leaves in functions of their own, a decision takes half as long again (27 ns for 17 on 10,000 keys,
      # AMD EPYC Zen 4, g++ 12.2, 2026-11-21, `npm run bench -- --case batch`).
      # No multiply-add in one step: the arithmetic of ticks must come out as JavaScript's.
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
