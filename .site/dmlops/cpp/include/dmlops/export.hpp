// What the library exports, and the number of its binary interface.
#pragma once

/// The binary interface of these headers: a library with another number must not be linked to what
/// was compiled with them. It is part of the shared library's name; dmlops::abi_version() says
/// which one the library at hand has.
#define DMLOPS_ABI_VERSION 1

// DMLOPS_STATIC is defined for those who use the static library, by the CMake target too.
#if defined(DMLOPS_STATIC)
#define DMLOPS_API
#elif !defined(_WIN32)
#define DMLOPS_API __attribute__((visibility("default")))
#elif defined(DMLOPS_EXPORTS)  // while the library itself is built
#define DMLOPS_API __declspec(dllexport)
#else
#define DMLOPS_API __declspec(dllimport)
#endif
