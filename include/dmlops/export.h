/* The symbols that the library exports, and the version of its binary interface. For C and C++. */
#ifndef DMLOPS_EXPORT_H
#define DMLOPS_EXPORT_H

/**
 * Version of the binary interface, part of the shared library's file name. A program must not be
 * linked to a library with another version: dmlops::abi_version() and dmlops_abi_version() return
 * the library's.
 */
#define DMLOPS_ABI_VERSION 3

/* DMLOPS_STATIC must be defined when linking the static library; its CMake target does so. */
#if defined(DMLOPS_STATIC)
#define DMLOPS_API
#elif !defined(_WIN32)
#define DMLOPS_API __attribute__((visibility("default")))
#elif defined(DMLOPS_EXPORTS) /* while the library itself is compiled */
#define DMLOPS_API __declspec(dllexport)
#else
#define DMLOPS_API __declspec(dllimport)
#endif

#endif
