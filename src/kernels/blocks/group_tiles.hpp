// Tiles of reduction groups: elements of up to 64 groups, a dense row for each group.
//
// Independent of the element type and of the formulas of reductions, which receive rows only.
// Elements that are contiguous in an operand are read and written in place; the others are packed,
// by transposition where groups are contiguous side by side.
#pragma once

#include "kernels/blocks/group_layout.hpp"
#include "kernels/blocks/pack.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kTileGroups = 64;
constexpr std::int64_t kTileElements = 4096;
constexpr std::int64_t kGroupStep = 16;  // tiles of a group begin at multiples of it

class GroupTiles {
 public:
  // `whole_groups`: of an input and an output alone, groups that are dense or fit the buffers are
  // selected as a whole, and packed once for all passes.
  GroupTiles(const Reduction& reduction, std::int64_t element_size, bool whole_groups = false);

  std::int64_t count() const { return count_; }  // elements in a group
  bool has_whole_groups() const { return tile_length_ >= count_; }
  bool uniform(int operand) const { return uniform_[operand]; }
  bool shared(int operand) const { return shared_[operand]; }  // by all groups
  // True if results are to be written by non-temporal stores.
  bool streams() const { return streams_; }

  // Selects groups from `first` on, and returns their number.
  std::int64_t select(std::int64_t first, std::int64_t end);

  // Returns the address of group k's element in a group operand.
  char* group_operand(int operand, std::int64_t k) const { return groups_data_[operand][k]; }

  // Calls visit(begin, length) for each tile of the selected groups.
  template <class Visit>
  DMLOPS_INLINE void for_each_tile(const Visit& visit) {
    for_each_tile(0, count_, visit);
  }
  // Calls visit(begin, length) for each tile of the elements [from, to), a part of the selected
  // groups: it begins and ends at multiples of part_unit() blocks, or at the end of the groups.
  template <class Visit>
  DMLOPS_INLINE void for_each_tile(std::int64_t from, std::int64_t to, const Visit& visit) {
    for (std::int64_t begin = from, length; begin < to; begin += length) {
      const std::int64_t left = run_ - begin % run_;  // elements in the run
      length = min(min(tile_length_, left), to - begin);
      if (begin + length < to) length = length / kGroupStep * kGroupStep;
      if (length == 0) length = min(kGroupStep, to - begin);  // spans the end of the run
      visit(begin, length);
    }
  }
  // Returns the number of blocks at whose multiples parts begin: tables have whole runs.
  std::int64_t part_unit() const {
    std::int64_t unit = 1;
    for (int o = 0; o < kFirstGroupOperand; ++o) {
      const std::int64_t run = loops_[o].run(), step = unit;
      while (has_table_[o] && unit * kSumBlock % run != 0) unit += step;
    }
    return unit;
  }

  // Sets the rows of operands, given as bits, to a tile, and packs its elements unless they are
  // contiguous. Returns at once if the tile is the one loaded last.
  void load(unsigned int operands, std::int64_t begin, std::int64_t length);

  template <class T>
  DMLOPS_INLINE const T* row(int operand, std::int64_t k) const {
    return reinterpret_cast<const T*>(row_[operand][k]);
  }

  // Returns the elements from the loaded tile to the next of its groups if that one begins another
  // run, which the hardware prefetcher does not follow, and is unlikely to be cached; otherwise 0.
  std::int64_t jump(int operand) const { return jump_[operand]; }
  // Prefetches elements [begin, begin + count) of group k's row in the next tile if it is such.
  // Inlined, since GCC 12 removes calls of functions that only prefetch.
  DMLOPS_INLINE void prefetch_next(int operand, std::int64_t k, std::int64_t begin,
                                   std::int64_t count) const {
    if (jump_[operand] == 0) return;
    prefetch_lines<2>(row_[operand][k] + (jump_[operand] + begin) * size_, count * size_);
  }

  // Returns the row for the results of group k in the loaded tile.
  template <class T>
  DMLOPS_INLINE T* target(std::int64_t k, std::int64_t begin) {
    return reinterpret_cast<T*>(writes_in_place_
                                    ? groups_data_[0][k] + offset_of(0, begin)
                                    : buffer(0) + k * tile_length_ * std::int64_t{sizeof(T)});
  }

  // Unpacks the results of the loaded tile to the output, unless they were computed in place.
  void store(std::int64_t begin, std::int64_t length);

 private:
  static constexpr std::int64_t kMaxSize = 4;       // of an element, in bytes
  static constexpr std::int64_t kShortestRun = 64;  // shorter runs are packed together
  // Bytes of the shortest run if small tiles span the ends of runs: their overhead equals packing
  // 2048 bytes.
  static constexpr std::int64_t kShortestSpannedRun = 2048;
  static constexpr std::int64_t kTableEntries = 1024;
  static constexpr std::int64_t kBufferBytes = kFirstGroupOperand * kTileElements * kMaxSize;
  static constexpr std::int64_t kNone = -1;
  // Bytes; shorter rows share too many of their cache lines.
  static constexpr std::int64_t kShortestStreamed = 1024;

  // The tile whose offsets a table has, of its runs or of its elements.
  struct Tabulated {
    std::int64_t begin = kNone;
    bool of_runs;
  };

  char* buffer(int o) { return buffers_ + o * buffer_bytes_; }
  std::int64_t step(int o) const { return elements_.strides[o][elements_.rank - 1]; }
  // True if a tile's elements are contiguous in an operand.
  bool is_contiguous(int o, std::int64_t begin, std::int64_t length) const {
    const ElementLoops& loops = loops_[o];
    return step(o) == size_ && (loops.rank == 1 || begin % loops.run() + length <= loops.run());
  }
  std::int64_t jump(int o, std::int64_t begin, std::int64_t length) const;
  void merge(int o);
  // Returns the bytes between groups, or 0 if they have no common step.
  std::int64_t common_step(int o) const {
    return common_ && kept_.rank > 0 ? kept_.strides[o][0] : 0;
  }

  void select_operand(int o, const std::int64_t* begun);
  // Returns the byte offset of an element of a group.
  std::int64_t offset_of(int o, std::int64_t i) const;
  // Returns the offsets of a tile's runs, or of its elements, which are the same for all groups.
  Source tabulate(int o, std::int64_t begin, std::int64_t length, bool of_runs);
  void pack_tile(int o, std::int64_t begin, std::int64_t length);

  const Reduction& reduction_;
  const ReductionNest& elements_;
  const ReductionNest& kept_;
  const std::int64_t size_;  // of an element, in bytes
  std::int64_t count_ = 1, batch_, tile_length_, run_, groups_ = 0;
  bool streams_, is_cached_;
  bool common_ = true;  // true if the selected groups have common steps
  bool writes_in_place_ = false;
  unsigned int loaded_operands_ = 0;
  std::int64_t loaded_tile_ = kNone;  // its first element
  std::int64_t jump_[kFirstGroupOperand];
  bool uniform_[kFirstGroupOperand], shared_[kFirstGroupOperand];
  std::int64_t packed_tile_[kFirstGroupOperand];  // first element of the packed tile, or kNone
  // The elements of a group in each operand, with dimensions merged as far as its strides allow.
  ElementLoops loops_[kFirstGroupOperand];
  std::int64_t sizes_[kFirstGroupOperand][kMaxRank], strides_[kFirstGroupOperand][kMaxRank];
  bool has_table_[kFirstGroupOperand];  // true if tiles are packed through an offset table
  Tabulated tabulated_[kFirstGroupOperand];
  std::int64_t tables_[kFirstGroupOperand][kTableEntries];
  char* groups_data_[kReductionOperands][kTileGroups];  // the first element of each group
  const char* row_[kFirstGroupOperand][kTileGroups];
  std::int64_t buffer_bytes_ = kTileElements * kMaxSize;  // of an operand
  alignas(kVectorBytes) char buffers_[kBufferBytes];
};

}  // namespace dmlops::DMLOPS_TARGET
