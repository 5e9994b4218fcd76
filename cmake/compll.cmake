# The built-in algorithms of CompLL become C++, once per instruction set, and are linked into the
# library.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import lark, numpy"
  RESULT_VARIABLE compll_status OUTPUT_QUIET ERROR_QUIET)
if(compll_status)
  message(FATAL_ERROR "${Python3_EXECUTABLE} lacks lark or numpy, which generate the codecs: "
    "pip install lark numpy, or name another Python with -DPython3_EXECUTABLE=...")
endif()

# Generated codecs are most of what is compiled, so a build for one's own machine takes "native".
set(HIPRESS_ISAS all CACHE STRING
  "Instruction sets to compile codecs for: all, native (this processor's best), or a list of names")
set(compll_known_isas baseline)
set(compll_native_isa baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND compll_known_isas avx2 avx512)
  if(EXISTS /proc/cpuinfo)
    # The same features as SupportsSimd in src/base/simd.cc asks for.
    file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
    set(cpu_flags "${cpu_flags} ")
    if(cpu_flags MATCHES " avx2 " AND cpu_flags MATCHES " f16c " AND cpu_flags MATCHES " bmi2 ")
      set(compll_native_isa avx2)
      if(cpu_flags MATCHES " avx512f " AND cpu_flags MATCHES " avx512bw " AND
         cpu_flags MATCHES " avx512dq " AND cpu_flags MATCHES " avx512vl ")
        set(compll_native_isa avx512)
      endif()
    endif()
  endif()
endif()
if(HIPRESS_ISAS STREQUAL "all")
  set(compll_isas ${compll_known_isas})
elseif(HIPRESS_ISAS STREQUAL "native")
  set(compll_isas ${compll_native_isa})
else()
  set(compll_isas ${HIPRESS_ISAS})
  foreach(isa ${compll_isas})
    if(NOT isa IN_LIST compll_known_isas)
      message(FATAL_ERROR "HIPRESS_ISAS must be all, native or a list of ${compll_known_isas}, "
        "not ${HIPRESS_ISAS}")
    endif()
  endforeach()
endif()
message(STATUS "CompLL: codecs for ${compll_isas}")
set(compll_isa_definitions)
foreach(isa ${compll_isas})
  string(TOUPPER "HIPRESS_CODECS_${isa}" definition)
  list(APPEND compll_isa_definitions ${definition})
endforeach()
set_source_files_properties(src/base/simd.cc PROPERTIES
  COMPILE_DEFINITIONS "${compll_isa_definitions}")
set(compll_python ${CMAKE_CURRENT_SOURCE_DIR}/python)
file(GLOB compll_specs CONFIGURE_DEPENDS ${compll_python}/hipress/compression/compiler/specs/*.cll)
set(compll_output ${CMAKE_CURRENT_BINARY_DIR}/compll)
file(GLOB_RECURSE compll_compiler CONFIGURE_DEPENDS
  ${compll_python}/hipress/compression/compiler/*.py ${compll_python}/hipress/compression/compiler/*.lark)

set(compll_sources ${compll_output}/builtins.cc)
# Ints wrap around by definition. -O3 takes twice as long to compile
# and gains nothing: the code is vectorized as it is generated.
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
    ${Python3_EXECUTABLE} -m hipress.compression.compiler.build_builtins cpp ${compll_output} ${compll_isa_list}
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
