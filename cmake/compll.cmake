# The built-in algorithms of CompLL become C++, once per instruction set, and are linked into the
# library.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import lark, numpy"
  RESULT_VARIABLE compll_status OUTPUT_QUIET ERROR_QUIET)
if(compll_status)
  message(FATAL_ERROR "${Python3_EXECUTABLE} lacks lark or numpy, which generate the codecs: "
    "pip install lark numpy, or name another Python with -DPython3_EXECUTABLE=...")
endif()

set(compll_isas baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(HIPRESS_WIDE_ISAS avx2 avx512 CACHE STRING "Instruction sets to compile codecs for, too")
  list(APPEND compll_isas ${HIPRESS_WIDE_ISAS})
endif()
set(compll_python ${CMAKE_CURRENT_SOURCE_DIR}/python)
file(GLOB compll_specs CONFIGURE_DEPENDS ${compll_python}/hipress/compll/specs/*.cll)
set(compll_output ${CMAKE_CURRENT_BINARY_DIR}/compll)
file(GLOB_RECURSE compll_compiler CONFIGURE_DEPENDS
  ${compll_python}/hipress/compll/*.py ${compll_python}/hipress/compll/*.lark)

set(compll_sources ${compll_output}/builtins.cc)
# Ints wrap around by definition. -O3 takes twice as long to compile
# and gains nothing: the code is vectorised as it is generated.
set(compll_flags -O2 -fwrapv -fno-math-errno -fno-trapping-math -Wno-psabi
  -Wno-maybe-uninitialized -Wno-uninitialized -Wno-unused-variable)
set(compll_flags_baseline "")
set(compll_flags_avx2 ${HIPRESS_AVX2_FLAGS})  # cmake/simd.cmake
set(compll_flags_avx512 ${HIPRESS_AVX512_FLAGS})
foreach(spec ${compll_specs})
  get_filename_component(name ${spec} NAME_WE)
  foreach(isa ${compll_isas})
    set(source ${compll_output}/${name}_${isa}.cc)
    list(APPEND compll_sources ${source})
    set_source_files_properties(${source} PROPERTIES
      COMPILE_OPTIONS "${compll_flags};${compll_flags_${isa}}")
  endforeach()
endforeach()
string(REPLACE ";" "," compll_isa_list "${compll_isas}")
add_custom_command(
  OUTPUT ${compll_sources}
  COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${compll_python} PYTHONDONTWRITEBYTECODE=1
    ${Python3_EXECUTABLE} -m hipress.compll.build_builtins cpp ${compll_output} ${compll_isa_list}
    ${compll_specs}
  DEPENDS ${compll_specs} ${compll_compiler}
  COMMENT "CompLL: generating the built-in codecs"
  VERBATIM)
# They are written for GCC's vectors; `make fuzz` has another program for their decoders.
if(NOT HIPRESS_LIBFUZZER)
  target_sources(hipress_objects PRIVATE ${compll_sources})
endif()

# What algorithms compiled at run time include.
install(DIRECTORY src/operator/contrib/compll DESTINATION hipress/include/operator/contrib)
install(FILES src/operator/contrib/half.h DESTINATION hipress/include/operator/contrib)
