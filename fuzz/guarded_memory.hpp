// Memory between two inaccessible pages.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace dmlops::fuzz {

class GuardedMemory {
 public:
  static constexpr std::size_t kCapacity = 64 * 1024;  // whole pages
  static constexpr std::size_t kGuard = 64 * 1024;

  GuardedMemory() {
    void* const mapping =
        mmap(nullptr, kCapacity + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) std::abort();
    begin_ = static_cast<char*>(mapping) + kGuard;
    if (mprotect(begin_, kCapacity, PROT_READ | PROT_WRITE) != 0) std::abort();
  }

  char* begin() const { return begin_; }
  char* end() const { return begin_ + kCapacity; }

  // `size` bytes that end or begin at a guard page.
  char* place(std::size_t size, bool at_end) const {
    return at_end ? begin_ + kCapacity - size : begin_;
  }

 private:
  char* begin_;
};

}  // namespace dmlops::fuzz
