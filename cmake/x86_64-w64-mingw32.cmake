# Toolchain: 64-bit Windows with Debian's MinGW-w64, programs run by Wine where it is installed.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
# Links the compiler's run-time libraries statically, as few machines have them.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
find_program(DMLOPS_WINE NAMES wine wine-stable)
if(DMLOPS_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${DMLOPS_WINE})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
