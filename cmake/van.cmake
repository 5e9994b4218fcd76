# XXH3 picks its vector width when it is compiled; checksum.cc picks the object at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(src/van/checksum_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2")
  # g++ 12 warns about its own AVX-512 header.
  set_source_files_properties(src/van/checksum_avx512.cc PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-Wno-uninitialized;-Wno-maybe-uninitialized")
endif()

file(GLOB HIPRESS_TRANSPORT_BENCH CONFIGURE_DEPENDS benchmarks/transport/*.cc)
add_executable(transport_bench EXCLUDE_FROM_ALL ${HIPRESS_TRANSPORT_BENCH})
target_include_directories(transport_bench PRIVATE benchmarks/transport)
target_link_libraries(transport_bench PRIVATE hipress_objects)
