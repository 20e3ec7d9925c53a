// Searches for overlaps of views, and copies inputs that overlap an output.
#include "operators/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/float_environment.hpp"
#include "core/insertion_sort.hpp"
#include "core/isa.hpp"
#include "core/views.hpp"
#include "traversal/run.hpp"

namespace dmlops {
namespace {

// The range of bytes of a view's elements.
std::pair<const char*, const char*> extent(const ConstTensorView& view) {
  const char* begin = static_cast<const char*>(view.data);
  const char* end = begin + element_size(view.type);
  for (std::size_t d = 0; d < rank_of(view); ++d) {
    const std::int64_t reach = (view.sizes[d] - 1) * view.strides[d];
    (reach < 0 ? begin : end) += reach;
  }
  return {begin, end};
}

bool same_elements(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.data != b.data || a.rank != b.rank) return false;
  for (std::size_t d = 0; d < rank_of(a); ++d) {
    if (a.sizes[d] != b.sizes[d] || (a.sizes[d] > 1 && a.strides[d] != b.strides[d])) return false;
  }
  return true;
}

// The differences of two indices along a dimension, from `low` to `high`.
struct Differences {
  std::int64_t low, high, stride;
};

// True if two elements have addresses less than an element apart. Searches the differences of their
// indices, the largest stride first, and prunes those that the smaller strides cannot compensate.
// The search is bounded; layouts beyond the bound count as overlapping.
class OverlapSearch {
 public:
  OverlapSearch(Differences* dimensions, int rank, std::int64_t element)
      : dimensions_(dimensions), rank_(rank), element_(element) {
    insertion_sort(dimensions, rank,
                   [](const Differences& a, const Differences& b) { return a.stride > b.stride; });
  }

  // `moved`: the indices differ, or belong to two views.
  bool found(int d, std::int64_t distance, bool moved) {
    if (--budget_ < 0) return true;
    if (d == rank_) return moved && std::llabs(distance) < element_;
    std::int64_t up = element_ - 1, down = up;
    for (int k = d + 1; k < rank_; ++k) {
      up += dimensions_[k].high * dimensions_[k].stride;
      down -= dimensions_[k].low * dimensions_[k].stride;
    }
    const auto [low, high, stride] = dimensions_[d];
    // -up <= distance + difference * stride <= down
    const std::int64_t first = std::max(-((distance + up) / stride), low);
    const std::int64_t last = std::min((down - distance) / stride, high);
    for (std::int64_t difference = first; difference <= last; ++difference) {
      if (found(d + 1, distance + difference * stride, moved || difference != 0)) return true;
    }
    return false;
  }

 private:
  const Differences* dimensions_;
  int rank_;
  std::int64_t element_;
  int budget_ = 100000;
};

}  // namespace

bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  const auto [a_begin, a_end] = extent(a);
  const auto [b_begin, b_end] = extent(b);
  if (a_end <= b_begin || b_end <= a_begin) return false;
  Differences dimensions[2 * kMaxRank];
  int rank = 0;
  for (std::size_t d = 0; d < rank_of(a); ++d) {
    if (a.sizes[d] > 1) dimensions[rank++] = {0, a.sizes[d] - 1, std::llabs(a.strides[d])};
  }
  for (std::size_t d = 0; d < rank_of(b); ++d) {
    if (b.sizes[d] > 1) dimensions[rank++] = {1 - b.sizes[d], 0, std::llabs(b.strides[d])};
  }
  OverlapSearch search(dimensions, rank, element_bytes(a.type));
  return search.found(0, a_begin - b_begin, true);
}

bool overlaps_itself(const ConstTensorView& view) {
  Differences dimensions[kMaxRank];
  int rank = 0;
  for (std::size_t d = 0; d < rank_of(view); ++d) {
    const std::int64_t last = view.sizes[d] - 1;
    if (last == 0) continue;
    if (view.strides[d] == 0) return true;
    dimensions[rank++] = {-last, last, std::llabs(view.strides[d])};
  }
  const std::int64_t element = element_bytes(view.type);
  OverlapSearch search(dimensions, rank, element);
  // Fast path: each stride exceeds the extent of the smaller ones.
  std::int64_t reach = element;
  bool nested = true;
  for (int d = rank - 1; d >= 0; --d) {
    nested = nested && dimensions[d].stride >= reach;
    reach += dimensions[d].high * dimensions[d].stride;
  }
  return !nested && search.found(0, 0, false);
}

ReadableInput::ReadableInput(const ConstTensorView& input, const TensorView& output)
    : input_(input) {
  const auto [input_begin, input_end] = extent(input);
  const auto [output_begin, output_end] = extent(output);
  if (input_end <= output_begin || output_end <= input_begin || same_elements(input, output))
    return;

  TensorView copy(nullptr, input.type, input.rank, input.sizes, {});
  std::int64_t bytes = element_bytes(input.type);
  for (std::size_t d = rank_of(input); d-- > 0;) {
    if (input.strides[d] == 0) copy.sizes[d] = 1;  // keeps broadcast dimensions broadcast
    copy.strides[d] = bytes;
    bytes *= copy.sizes[d];
  }
  copy_.reset(new char[static_cast<std::size_t>(bytes)]);
  copy.data = copy_.get();
  ConstTensorView source = input;
  source.sizes = copy.sizes;
  const Nest nest = make_nest(copy, &source, 1);
  const FloatEnvironment environment;
  run(nest, nest.data, copy_kernel(element_size(input.type)), nullptr);
  view_ = copy;
  view_.sizes = input.sizes;
  for (std::size_t d = 0; d < rank_of(input); ++d) {
    if (copy.sizes[d] == 1) view_.strides[d] = 0;
  }
}

const ConstTensorView* ReadableInputs::add(const ConstTensorView& input) {
  const ConstTensorView* view = &input;
  for (const TensorView& output : outputs_) {
    kept_.push_back(std::make_unique<ReadableInput>(*view, output));
    view = &kept_.back()->view();
  }
  return view;
}

}  // namespace dmlops
