// Tiles of reduction groups: elements of up to 64 groups, a dense row for each group.
//
// Compiled once for each element type; the formulas of reductions receive rows only. Elements that
// are contiguous in an operand are read and written in place; the others are packed, by
// transposition where groups are contiguous side by side.
#pragma once

#include "kernels/blocks/group_layout.hpp"
#include "kernels/blocks/pack.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kTileGroups = 64;
constexpr std::int64_t kTileElements = 4096;
constexpr std::int64_t kGroupStep = 16;  // tiles of a group begin at multiples of it

template <class T>
class GroupTiles {
 public:
  explicit GroupTiles(const Reduction& reduction)
      : reduction_(reduction), elements_(reduction.elements), kept_(reduction.kept) {
    for (int d = 0; d < elements_.rank; ++d) count_ *= elements_.sizes[d];
    const std::int64_t run = elements_.sizes[elements_.rank - 1];
    // True if tiles lie within runs of the innermost dimension.
    const bool by_run =
        elements_.rank == 1 || run >= (run % kGroupStep == 0 ? kShortestRun : kShortestSpannedRun);
    const bool has_short_runs = !by_run && run < kShortestRun;
    for (int o = 0; o < kFirstGroupOperand; ++o) {
      packed_tile_[o] = kNone;
      merge(o);
      uniform_[o] = o > 1 && has_no_strides(elements_, o);
      shared_[o] = o > 1 && has_no_strides(kept_, o);
    }
    const std::int64_t steps = (count_ + kGroupStep - 1) / kGroupStep * kGroupStep;
    batch_ = steps < kTileElements ? kTileElements / steps : 1;
    // Groups that are nearer than the elements of a group share cache lines. Tiles of a line
    // suffice where long groups are contiguous in the input alone.
    for (int o = 0; o < kFirstGroupOperand && kept_.rank > 0; ++o) {
      if (reduction.data[o] == nullptr || shared_[o] || step(o) == kSize) continue;
      if (abs(kept_.strides[o][0]) >= min(kLineBytes, abs(step(o)))) continue;
      if (o != 1 && batch_ >= 4) continue;
      const std::int64_t together = min(o == 1 ? kTileGroups : kLineBytes / kSize, kept_.sizes[0]);
      if (batch_ < together) batch_ = together;
    }
    batch_ = min(batch_, kTileGroups);
    tile_length_ = kTileElements / batch_ / kGroupStep * kGroupStep;
    if (has_short_runs) {  // in whole runs
      const std::int64_t unit = run * kGroupStep / min(run & -run, kGroupStep);
      tile_length_ = min(tile_length_, kTableEntries) / unit * unit;
      if (tile_length_ == 0) tile_length_ = unit;
      batch_ = min(batch_, kTileElements / tile_length_);
    }
    tile_length_ = min(tile_length_, by_run ? run : count_);
    run_ = by_run ? run : count_;
    for (int o = 0; o < kFirstGroupOperand; ++o) {
      has_table_[o] = has_short_runs && loops_[o].run() < kShortestRun;
      // Tables have whole runs.
      if (has_table_[o] && tile_length_ % loops_[o].run() != 0)
        loops_[o] = element_loops(reduction, o);
    }
    is_cached_ = 2 * (reduction.end - reduction.first) * count_ * kSize <= kLikelyCached;
    streams_ = reduction.streaming && is_contiguous(0, 0, tile_length_) &&
               tile_length_ * kSize >= kShortestStreamed;
  }

  std::int64_t count() const { return count_; }  // elements in a group
  bool has_whole_groups() const { return tile_length_ >= count_; }
  bool uniform(int operand) const { return uniform_[operand]; }
  bool shared(int operand) const { return shared_[operand]; }  // by all groups
  // True if results are to be written by non-temporal stores.
  bool streams() const { return streams_; }

  // Selects groups from `first` on, and returns their number.
  DMLOPS_NO_INLINE std::int64_t select(std::int64_t first, std::int64_t end) {
    groups_ = min(batch_, end - first);
    if (kept_.rank > 1 && kept_.sizes[0] >= kGroupStep)
      groups_ = min(groups_, kept_.sizes[0] - first % kept_.sizes[0]);
    std::int64_t index[kMaxRank] = {}, position = first;
    for (int d = 0; d < kept_.rank; ++d) {
      index[d] = position % kept_.sizes[d];
      position /= kept_.sizes[d];
    }
    common_ = kept_.rank == 0 || index[0] + groups_ <= kept_.sizes[0];
    for (int o = 0; o < kReductionOperands; ++o) {
      if (reduction_.data[o] == nullptr) continue;
      if (o < kFirstGroupOperand && !shared_[o]) packed_tile_[o] = kNone;
      select_operand(o, index);
    }
    return groups_;
  }

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
  // contiguous.
  DMLOPS_NO_INLINE void load(unsigned int operands, std::int64_t begin, std::int64_t length) {
    writes_in_place_ = is_contiguous(0, begin, length);
    jump_[0] = writes_in_place_ ? jump(0, begin, length) : 0;
    for (int o = 1; o < kFirstGroupOperand; ++o) {
      jump_[o] = 0;
      if ((operands >> o & 1u) == 0 || reduction_.data[o] == nullptr) continue;
      if (uniform_[o]) {
        for (std::int64_t k = 0; k < groups_; ++k) row_[o][k] = groups_data_[o][k];
      } else if (is_contiguous(o, begin, length)) {
        const std::int64_t offset = offset_of(o, begin);
        jump_[o] = jump(o, begin, length);
        for (std::int64_t k = 0; k < groups_; ++k) row_[o][k] = groups_data_[o][k] + offset;
      } else {
        pack_tile(o, begin, length);
      }
    }
  }

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
    prefetch_lines<2>(row_[operand][k] + (jump_[operand] + begin) * kSize, count * kSize);
  }

  // Returns the row for the results of group k in the loaded tile.
  DMLOPS_INLINE T* target(std::int64_t k, std::int64_t begin) {
    return reinterpret_cast<T*>(writes_in_place_ ? groups_data_[0][k] + offset_of(0, begin)
                                                 : buffer_[0] + k * tile_length_ * kSize);
  }

  // Unpacks the results of the loaded tile to the output, unless they were computed in place.
  DMLOPS_NO_INLINE void store(std::int64_t begin, std::int64_t length) {
    if (writes_in_place_) return;
    const std::int64_t group_step = common_step(0), element_step = step(0),
                       pitch = tile_length_ * kSize;
    const bool side_by_side = group_step == kSize && element_step != kSize && groups_ > 1;
    if (has_table_[0] && side_by_side) {
      const Source elements = tabulate(0, begin, length, false);
      alignas(kVectorBytes) char columns[kTileElements * kSize];
      pack<Bits<T>>(columns, groups_ * kSize, groups_, length, {buffer_[0], kSize, pitch});
      return unpack<Bits<T>>(groups_data_[0][0], kSize, elements.offsets, columns, length * groups_,
                             groups_);
    }
    if (has_table_[0]) {
      const Source runs = tabulate(0, begin, length, element_step == kSize);
      for (std::int64_t k = 0; k < groups_; ++k)
        unpack<Bits<T>>(groups_data_[0][k], 0, runs.offsets, buffer_[0] + k * pitch, length,
                        runs.run);
      return;
    }
    loops_[0].for_each_run(
        begin, begin + length, [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
          const char* const source = buffer_[0] + i * kSize;
          if (side_by_side)
            return pack<Bits<T>>(groups_data_[0][0] + offset, element_step, groups_, run,
                                 {source, kSize, pitch, nullptr});
          for (std::int64_t k = 0; k < groups_; ++k) {
            if (element_step == kSize) {
              copy_run(groups_data_[0][k] + offset, source + k * pitch, run * kSize);
            } else {
              unpack<Bits<T>>(groups_data_[0][k] + offset, element_step, nullptr,
                              source + k * pitch, run);
            }
          }
        });
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kShortestRun = 64;  // shorter runs are packed together
  // The minimum length if small tiles span the ends of runs: their overhead equals packing 2048
  // bytes.
  static constexpr std::int64_t kShortestSpannedRun = 2048 / kSize;
  static constexpr std::int64_t kTableEntries = 1024;
  static constexpr std::int64_t kNone = -1;
  // Bytes; shorter rows share too many of their cache lines.
  static constexpr std::int64_t kShortestStreamed = 1024;

  // The offsets of the runs, or of the elements, of the tile that begins at `begin`.
  struct OffsetTable {
    std::int64_t begin = kNone;
    bool of_runs;
    std::int64_t offsets[kTableEntries];
  };

  std::int64_t step(int o) const { return elements_.strides[o][elements_.rank - 1]; }
  // True if a tile's elements are contiguous in an operand.
  bool is_contiguous(int o, std::int64_t begin, std::int64_t length) const {
    const ElementLoops& loops = loops_[o];
    return step(o) == kSize && (loops.rank == 1 || begin % loops.run() + length <= loops.run());
  }
  std::int64_t jump(int o, std::int64_t begin, std::int64_t length) const {
    const std::int64_t end = begin + length;
    if (is_cached_ || end >= count_ || loops_[o].rank == 1 || end % loops_[o].run() != 0) return 0;
    return (offset_of(o, end) - offset_of(o, begin)) / kSize;
  }
  void merge(int o) {
    int rank = 0;
    for (int d = 0; d < elements_.rank; ++d) {
      const std::int64_t size = elements_.sizes[d], stride = elements_.strides[o][d];
      if (rank > 0 && strides_[o][rank - 1] == stride * size) {
        sizes_[o][rank - 1] *= size;
        strides_[o][rank - 1] = stride;
      } else {
        sizes_[o][rank] = size;
        strides_[o][rank++] = stride;
      }
    }
    loops_[o] = {rank, sizes_[o], strides_[o]};
  }
  // Returns the bytes between groups, or 0 if they have no common step.
  std::int64_t common_step(int o) const {
    return common_ && kept_.rank > 0 ? kept_.strides[o][0] : 0;
  }

  void select_operand(int o, const std::int64_t* begun) {
    std::int64_t index[kMaxRank];
    char* data = reduction_.data[o];
    for (int d = 0; d < kept_.rank; ++d) {
      index[d] = begun[d];
      data += index[d] * kept_.strides[o][d];
    }
    if (common_) {
      const std::int64_t step = common_step(o);
      for (std::int64_t k = 0; k < groups_; ++k) groups_data_[o][k] = data + k * step;
      return;
    }
    for (std::int64_t k = 0; k < groups_; ++k) {
      groups_data_[o][k] = data;
      for (int d = 0; d < kept_.rank; ++d) {
        data += kept_.strides[o][d];
        if (++index[d] < kept_.sizes[d]) break;
        data -= kept_.sizes[d] * kept_.strides[o][d];
        index[d] = 0;
      }
    }
  }

  // Returns the byte offset of an element of a group.
  std::int64_t offset_of(int o, std::int64_t i) const {
    if (loops_[o].rank == 1) return i * step(o);
    std::int64_t offset = 0;
    for (int d = loops_[o].rank - 1; d >= 0; --d) {
      offset += i % loops_[o].sizes[d] * loops_[o].strides[d];
      i /= loops_[o].sizes[d];
    }
    return offset;
  }

  // Returns the offsets of a tile's runs, or of its elements, which are the same for all groups.
  Source tabulate(int o, std::int64_t begin, std::int64_t length, bool of_runs) {
    const std::int64_t run = loops_[o].run();
    OffsetTable& table = tables_[o];
    std::int64_t* entry = table.offsets;
    const Source source = {nullptr, 0, step(o), entry, of_runs ? run : 1};
    if (table.begin == begin && table.of_runs == of_runs) return source;
    table.begin = begin;
    table.of_runs = of_runs;
    loops_[o].for_each_run(begin, begin + length,
                           [&](std::int64_t offset, std::int64_t, std::int64_t) {
                             *entry++ = offset;
                             for (std::int64_t i = 1; !of_runs && i < run; ++i)
                               *entry++ = offset + i * step(o);
                           });
    return source;
  }

  void pack_tile(int o, std::int64_t begin, std::int64_t length) {
    const std::int64_t pitch = shared_[o] ? 0 : tile_length_ * kSize;
    for (std::int64_t k = 0; k < groups_; ++k) row_[o][k] = buffer_[o] + k * pitch;
    if (packed_tile_[o] == begin) return;
    packed_tile_[o] = begin;
    const std::int64_t group_step = common_step(o);
    if (has_table_[o]) {
      const bool of_runs =
          step(o) == 0 || (step(o) == kSize && !(group_step == kSize && groups_ > 1));
      Source runs = tabulate(o, begin, length, of_runs);
      const bool together = group_step != 0 && pitch != 0;
      runs.pitch = group_step;
      for (std::int64_t k = 0; k < (together || pitch == 0 ? 1 : groups_); ++k) {
        runs.data = groups_data_[o][k];
        pack<Bits<T>>(buffer_[o] + k * pitch, pitch, length, together ? groups_ : 1, runs);
      }
      return;
    }
    loops_[o].for_each_run(
        begin, begin + length, [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
          char* const target = buffer_[o] + i * kSize;
          const bool together = group_step != 0 && pitch != 0;
          const std::int64_t calls = together || pitch == 0 ? 1 : groups_;
          for (std::int64_t k = 0; k < calls; ++k)
            pack<Bits<T>>(target + k * pitch, pitch, run, together ? groups_ : 1,
                          {groups_data_[o][k] + offset, group_step, step(o), nullptr});
        });
  }

  const Reduction& reduction_;
  const ReductionNest& elements_;
  const ReductionNest& kept_;
  std::int64_t count_ = 1, batch_, tile_length_, run_, groups_ = 0;
  bool streams_, is_cached_;
  bool common_ = true;  // true if the selected groups have common steps
  bool writes_in_place_ = false;
  std::int64_t jump_[kFirstGroupOperand];
  bool uniform_[kFirstGroupOperand], shared_[kFirstGroupOperand];
  std::int64_t packed_tile_[kFirstGroupOperand];  // first element of the packed tile, or kNone
  // The elements of a group in each operand, with dimensions merged as far as its strides allow.
  ElementLoops loops_[kFirstGroupOperand];
  std::int64_t sizes_[kFirstGroupOperand][kMaxRank], strides_[kFirstGroupOperand][kMaxRank];
  bool has_table_[kFirstGroupOperand];  // true if tiles are packed through an offset table
  OffsetTable tables_[kFirstGroupOperand];
  char* groups_data_[kReductionOperands][kTileGroups];  // the first element of each group
  const char* row_[kFirstGroupOperand][kTileGroups];
  alignas(kVectorBytes) char buffer_[kFirstGroupOperand][kTileElements * sizeof(T)];
};

}  // namespace dmlops::DMLOPS_TARGET
