# MXNet's operators: a library of its own, because it needs MXNet's headers. Where they are missing
# (a wheel is built without MXNet), mxnet_hipress.load_operators() compiles it on first use.
execute_process(COMMAND ${Python3_EXECUTABLE} -c
  "import importlib.util; print(importlib.util.find_spec('mxnet').submodule_search_locations[0])"
  OUTPUT_VARIABLE mxnet_home OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(EXISTS "${mxnet_home}/src/lib_api.cc")
  add_library(hipress_mxnet_ops MODULE src/operator/frameworks/mxnet_library.cc)
  target_include_directories(hipress_mxnet_ops PRIVATE include src)
  target_include_directories(hipress_mxnet_ops SYSTEM PRIVATE ${mxnet_home}/include ${mxnet_home}/src)
  target_link_libraries(hipress_mxnet_ops PRIVATE hipress ${CMAKE_DL_LIBS})
  # Thunks in hundreds, which the work is not in.
  target_compile_options(hipress_mxnet_ops PRIVATE -O1)
  # MXNet calls the functions of lib_api.cc by their names.
  set_target_properties(hipress_mxnet_ops PROPERTIES CXX_VISIBILITY_PRESET default
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
endif()

# Generated operators and the library above are compiled from the installed package.
install(DIRECTORY src/operator/frameworks DESTINATION hipress/include/operator)
install(FILES include/hipress/c_api.h DESTINATION hipress/include/hipress)
