# XXH3 picks its vector width when it is compiled; checksum.cc picks the object at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(src/transport/checksum_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2")
  # g++ 12 warns about its own AVX-512 header.
  set_source_files_properties(src/transport/checksum_avx512.cc PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-Wno-uninitialized;-Wno-maybe-uninitialized")
endif()
