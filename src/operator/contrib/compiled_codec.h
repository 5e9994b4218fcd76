/*!
 * \file compiled_codec.h
 * \brief Algorithms compiled by CompLL as codecs of the registry.
 */
#pragma once

#include <string>

#include "operator/contrib/compll/abi.h"

namespace hipress {

/// The same algorithm compiled for the instruction sets of kernels.h, by their names.
struct CompiledVariants {
  CompllEntry baseline, avx2, avx512;  ///< null: not compiled for it
};

/// Registers an algorithm that is part of the library; done by static initializers.
bool RegisterBuiltin(const CompiledVariants& variants);

/*!
 * \brief Loads a shared library that CompLL compiled, and registers its algorithm.
 *
 * Loading the same algorithm (by its digest) again does nothing. The library stays loaded.
 * \return the type name
 * \throw Error if the file is no such library, or another algorithm has its name already
 */
std::string LoadCompiledCodec(const std::string& path);

}  // namespace hipress
