// What both ways through a group of log_softmax share: its elements, the shape of its sum, and the
// steps.
//
// Element i of a group goes to lane i % 16. A lane adds up the 64 elements of a block, and then the
// sums of those, in float64; at the end lane j takes in lane j + 8, then j + 4, and so on. Both
// ways keep to this shape, which makes the result independent of instruction set and layout.
#pragma once

#include "kernels/log_softmax_subtrahends.hpp"

namespace dmlops::DMLOPS_TARGET {

// Groups of fewer elements are done down columns, unless they are few. In float16, whose plain sums
// they would often find not to be enough, their maxima come first.
template <class T>
constexpr std::int64_t kShort = std::is_same_v<T, float> ? 64 : 128;

// Groups that are done together: their subtrahends, and the steps there, which `Way` knows.
template <class Way, class T, int kCapacity>
class Batch {
 protected:
  void run(std::int64_t count) {
    Way& way = static_cast<Way&>(*this);
    bool enough = false;
    if (std::is_same_v<T, float> || way.elements() >= kShort<T>) {
      if (near_) {
        way.template add_plain<true>();
        near_ = subtrahends_.all_from(count, kExpEnd);
      }
      if (!near_) way.template add_plain<false>();
      enough = subtrahends_.take_plain(count);
    } else {
      way.find_maxima();
      subtrahends_.take_none(count);
    }
    if (!enough) {
      way.add_rest();
      subtrahends_.take_rest(count);
    }
    subtrahends_.compute(count);
    way.finish();
  }

  Subtrahends<T, kCapacity> subtrahends_ = {};

 private:
  bool near_ = true;  // have no elements been far below 0 yet?
};

// Where the elements of one group lie.
struct GroupShape {
  int rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (int d = 0; d < rank; ++d) product *= sizes[d];
    return product;
  }

  std::int64_t run() const { return sizes[rank - 1]; }     // elements that follow each other ...
  std::int64_t step() const { return strides[rank - 1]; }  // ... at this distance

  // visit(offset of a run in memory, its index in the part, its length) for the part [begin, end)
  // of the group.
  template <class Visit>
  DMLOPS_INLINE void for_each_run(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    if (rank == 1) return visit(begin * step(), 0, end - begin);
    const std::int64_t inner = run();
    for (std::int64_t i = begin; i < end;) {
      std::int64_t index = i / inner, offset = (i % inner) * step();
      for (int d = rank - 2; d >= 0; --d) {
        offset += (index % sizes[d]) * strides[d];
        index /= sizes[d];
      }
      const std::int64_t length = least(inner - i % inner, end - i);
      visit(offset, i - begin, length);
      i += length;
    }
  }
};

}  // namespace dmlops::DMLOPS_TARGET
