# The library of a wheel. `make wheel` and cibuildwheel set HIPRESS_STATIC_DEPENDENCIES: OpenSSL
# and libstdc++ become part of it, so that it runs on older distributions and beside any OpenSSL of
# the same process (Python's, PyTorch's). libgcc_s stays shared: its interface is stable, and every
# Linux with Python has it. The wheel's library is a target of its own, so that a wheel made in the
# folder of a development build leaves that build's libhipress.so as it is.
set(HIPRESS_PACKAGED hipress)
if(HIPRESS_STATIC_DEPENDENCIES)
  foreach(library ssl crypto)
    string(TOUPPER ${library} upper)
    get_filename_component(folder "${OPENSSL_${upper}_LIBRARY}" DIRECTORY)
    find_library(HIPRESS_STATIC_${upper} lib${library}.a HINTS ${folder} ${OPENSSL_ROOT_DIR}
      PATH_SUFFIXES lib lib64)
    if(NOT HIPRESS_STATIC_${upper})
      message(FATAL_ERROR "HIPRESS_STATIC_DEPENDENCIES is ON, but there is no lib${library}.a: "
        "set OPENSSL_ROOT_DIR to an OpenSSL that has one")
    endif()
  endforeach()
  message(STATUS "Linking ${HIPRESS_STATIC_SSL} and ${HIPRESS_STATIC_CRYPTO} into the library")
  add_library(hipress_packaged SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:hipress_objects>)
  target_link_libraries(hipress_packaged PRIVATE ${HIPRESS_STATIC_SSL} ${HIPRESS_STATIC_CRYPTO}
    Threads::Threads ${CMAKE_DL_LIBS})
  # Only our own functions are visible. Otherwise calls from here could reach another OpenSSL or
  # another C++ runtime of the process. Unused functions of the archives are left out: some of them
  # need a newer C library.
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(hipress_packaged PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL
    -Wl,--version-script,${exports})
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++)
  check_cxx_source_compiles("#include <string>\nint main(int n, char**) { return std::to_string(n).size(); }"
    HIPRESS_HAS_STATIC_LIBSTDCXX)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(HIPRESS_HAS_STATIC_LIBSTDCXX)
    target_link_options(hipress_packaged PRIVATE -static-libstdc++)
  else()
    # auditwheel accepts it if it is as old as the platform tag says, and bundles nothing.
    message(WARNING "This compiler has no static libstdc++: the library needs the system's libstdc++")
  endif()
  set_property(TARGET hipress_packaged APPEND PROPERTY LINK_DEPENDS ${exports})
  set_target_properties(hipress_packaged PROPERTIES OUTPUT_NAME hipress LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/packaged)
  set(HIPRESS_PACKAGED hipress_packaged)
endif()
add_custom_target(hipress_package DEPENDS ${HIPRESS_PACKAGED})
install(TARGETS ${HIPRESS_PACKAGED} LIBRARY DESTINATION hipress)
