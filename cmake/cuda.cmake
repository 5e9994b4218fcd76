# The built-in algorithms for GPUs: libhipress_cuda.so, apart from libhipress.so, which needs no
# CUDA. HIPRESS_CUDA=auto builds it if there is an nvcc (on: insists, off: never). Wheels of hipress
# are built with off; packaging/cuda12 makes a wheel of libhipress_cuda.so alone.
#
# All algorithms are compiled once, to PTX for compute_75, and assembled for each architecture:
# nothing in them needs a newer instruction, and the PTX itself serves later chips. nvcc is called
# directly: CMake's own CUDA support would compile once for each architecture.
set(HIPRESS_CUDA auto CACHE STRING "Build libhipress_cuda.so: auto, on or off")
set(HIPRESS_CUDA_MAJOR "" CACHE STRING "Major version that nvcc must have, for example 12; empty: any")
set(HIPRESS_CUDA_DESTINATION hipress CACHE STRING "Python package to install libhipress_cuda.so in")
set(HIPRESS_CUDA_ARCHS 75 80 86 90 CACHE STRING "GPU architectures, as nvcc's sm_XX")
string(TOLOWER "${HIPRESS_CUDA}" cuda_wanted)
if(NOT cuda_wanted MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "HIPRESS_CUDA must be auto, on or off, not ${HIPRESS_CUDA}")
endif()
# So that there is always a target of this name.
function(hipress_no_cuda why)
  message(STATUS "CUDA: ${why}, so libhipress_cuda.so is not built")
  add_custom_target(hipress_cuda COMMAND ${CMAKE_COMMAND} -E echo
    "CUDA: ${why}, so libhipress_cuda.so is not built" VERBATIM)
endfunction()
if(cuda_wanted STREQUAL "off")
  hipress_no_cuda("HIPRESS_CUDA is off")
  return()
endif()
find_program(HIPRESS_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT HIPRESS_NVCC)
  if(cuda_wanted STREQUAL "on")
    message(FATAL_ERROR "HIPRESS_CUDA is on, but there is no nvcc in PATH, $CUDA_HOME/bin or "
      "/usr/local/cuda/bin")
  endif()
  hipress_no_cuda("there is no nvcc in PATH, CUDA_HOME/bin or /usr/local/cuda/bin")
  return()
endif()

if(HIPRESS_CUDA_MAJOR)
  execute_process(COMMAND ${HIPRESS_NVCC} --version OUTPUT_VARIABLE nvcc_version)
  string(REGEX MATCH "release ([0-9]+)\\.[0-9]+" nvcc_release "${nvcc_version}")
  if(NOT CMAKE_MATCH_1 STREQUAL HIPRESS_CUDA_MAJOR)
    message(FATAL_ERROR "hipress-cuda${HIPRESS_CUDA_MAJOR} is built with CUDA ${HIPRESS_CUDA_MAJOR}, "
      "but ${HIPRESS_NVCC} is of ${nvcc_release}: set CUDA_HOME to a CUDA ${HIPRESS_CUDA_MAJOR}")
  endif()
endif()

set(cuda_codes compute_75)
foreach(arch ${HIPRESS_CUDA_ARCHS})
  list(PREPEND cuda_codes sm_${arch})
endforeach()
string(REPLACE ";" "," cuda_codes "${cuda_codes}")
message(STATUS "CUDA: libhipress_cuda.so for ${cuda_codes} with ${HIPRESS_NVCC}")

set(cuda_output ${CMAKE_CURRENT_BINARY_DIR}/compll_cuda)
set(cuda_sources ${cuda_output}/builtins.cu)
foreach(spec ${compll_specs})
  get_filename_component(name ${spec} NAME_WE)
  list(APPEND cuda_sources ${cuda_output}/${name}.cu)
endforeach()
add_custom_command(
  OUTPUT ${cuda_sources}
  COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${compll_python} PYTHONDONTWRITEBYTECODE=1
    ${Python3_EXECUTABLE} -m hipress.compression.compiler.build_builtins cuda ${cuda_output} ${compll_specs}
  DEPENDS ${compll_specs} ${compll_compiler}
  COMMENT "CompLL: generating the built-in codecs for CUDA"
  VERBATIM)
file(GLOB cuda_headers CONFIGURE_DEPENDS src/operator/contrib/compll/cuda/*
  src/operator/contrib/half.h src/operator/contrib/compll/layout.h
  src/operator/contrib/compll/scalar.h)
# -fmad=false: contracted multiply-adds would give other bits than the CPU's.
set(cuda_flags -std=c++17 -O2 -fmad=false --expt-relaxed-constexpr
  -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off)
set(cuda_objects)
foreach(source ${cuda_sources})
  set(object ${source}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${HIPRESS_NVCC} ${cuda_flags} "-gencode=arch=compute_75,code=[${cuda_codes}]"
      -I${CMAKE_CURRENT_SOURCE_DIR}/src -c ${source} -o ${object}
    DEPENDS ${source} ${cuda_headers}
    VERBATIM)
  list(APPEND cuda_objects ${object})
endforeach()
set(cuda_library ${CMAKE_CURRENT_BINARY_DIR}/libhipress_cuda.so)
add_custom_command(
  OUTPUT ${cuda_library}
  COMMAND ${HIPRESS_NVCC} -shared -cudart=static ${cuda_objects} -o ${cuda_library}
  DEPENDS ${cuda_objects}
  VERBATIM)
add_custom_target(hipress_cuda ALL DEPENDS ${cuda_library})
install(FILES ${cuda_library} DESTINATION ${HIPRESS_CUDA_DESTINATION} COMPONENT cuda)
