# The codecs' kernels are compiled once per instruction set and chosen at run time (kernels.cc), so
# the library itself is built for the baseline CPU and runs everywhere. (Not for libFuzzer: older
# clangs do not know the names of all processor features that are asked for.)
if(NOT HIPRESS_LIBFUZZER AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_compile_definitions(hipress_objects PUBLIC HIPRESS_X86_KERNELS)
  set(HIPRESS_AVX2_FLAGS -mavx2 -mf16c -mbmi2 -mpopcnt)
  set(HIPRESS_AVX512_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mf16c -mbmi2 -mpopcnt)
  set_source_files_properties(src/operator/contrib/kernels_avx2.cc PROPERTIES
    COMPILE_OPTIONS "${HIPRESS_AVX2_FLAGS}")
  # g++ 12 warns about its own intrinsics, which leave "undefined" vectors uninitialized on purpose.
  set_source_files_properties(src/operator/contrib/kernels_avx512.cc PROPERTIES
    COMPILE_OPTIONS "${HIPRESS_AVX512_FLAGS};-Wno-maybe-uninitialized;-Wno-uninitialized")
endif()
