// Tiles of reduction groups: elements of up to 64 groups, a dense row for each group.
//
// Independent of the element type and of the formulas of reductions, which receive rows only.
// Elements that are contiguous in an operand are read and written in place, run by run; the others
// are packed, by transposition where groups or the rows of a group are contiguous side by side, and
// several groups in the order of memory where their runs alternate.
#pragma once

#include "kernels/blocks/group_layout.hpp"
#include "kernels/blocks/pack.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kTileGroups = 64;
constexpr std::int64_t kGroupStep = 16;  // tiles of a group begin at multiples of it

// Elements [begin, begin + length) of a tile, which are contiguous or uniform in every operand.
struct TileRun {
  std::int64_t begin, length;
  std::int64_t offsets[kFirstGroupOperand];  // in the operands' rows, in bytes
};

class GroupTiles {
 public:
  // The shortest runs: of a tile as one run; that are read and written in place, while shorter ones
  // are packed through a table, unless transposes().
  static constexpr std::int64_t kOneRun = INT64_MAX, kShortestRun = 64;
  // The shortest runs in place for results if several operands have one element for each run, since
  // packing these takes longer.
  static constexpr std::int64_t kShortestOfConstants = 48;
  // Returns the shortest runs in place for results, with operands that may have one element for
  // each run, given as bits.
  std::int64_t shortest_results(unsigned int constant) const {
    return several_are_constant(constant) ? kShortestOfConstants : kShortestRun;
  }
  // Returns the shortest runs in place for sums.
  std::int64_t shortest_summed() const {
    return in_order_ && inner_size() * size_ < kShortestInOrder ? kOneRun : kShortestRun;
  }

  static constexpr std::int64_t kMaxSize = 4;  // of an element, in bytes
  static constexpr std::int64_t kBufferBytes = kFirstGroupOperand * kTileElements * kMaxSize;
  // Bytes of a group that a tile can hold with three packed operands.
  static constexpr std::int64_t kWholeBytes = kBufferBytes / 3;

  // The ways to read and write the elements of a group: in runs, by sweep_tiles() and
  // finish_tiles(), or in tiles of a single run; whole: groups that are dense, or of which enough
  // fit the buffers, are selected as a whole, and packed once for all passes. Short groups that
  // alternate in memory always are.
  enum class Access { in_runs, single, whole };

  // `operands`: those that have elements of a group, absent ones included.
  GroupTiles(const Reduction& reduction, std::int64_t element_size, Access access = Access::in_runs,
             int operands = kFirstGroupOperand);

  std::int64_t count() const { return count_; }  // elements in a group
  bool has_whole_groups() const { return tile_length_ >= count_; }
  // True if an operand has a single element in each run of the loaded tile.
  bool uniform(int operand) const { return uniform_[operand] || has_bit(constant_, operand); }
  // True if results are to be written by non-temporal stores.
  bool streams() const { return streams_; }

  // Selects groups from `first` on, and returns their number.
  std::int64_t select(std::int64_t first);

  // Returns the address of group k's element in a group operand.
  char* group_operand(int operand, std::int64_t k) const { return groups_data_[operand][k]; }

  // Calls visit(begin, length) for each tile of the selected groups, to be loaded as one run:
  // within the runs if these are long, but for tiles of a step that span their ends.
  template <class Visit>
  DMLOPS_INLINE void for_each_tile(const Visit& visit) {
    const bool in_runs = has_long_runs() && reads_runs_ && !has_whole_groups();
    const std::int64_t run = in_runs ? inner_size() : count_;
    for (std::int64_t begin = 0, length; begin < count_; begin += length) {
      length = min(tile_length_, run - begin % run);
      if (begin + length < count_) length = length / kGroupStep * kGroupStep;
      if (length == 0) length = min(kGroupStep, count_ - begin);
      visit(begin, length);
    }
  }
  std::int64_t tile_length() const { return tile_length_; }
  // Returns the length of the tiles of operands, given as bits: longer ones if all are in place.
  std::int64_t tile_length(unsigned int operands) const {
    for (int o = 0; o < operands_; ++o) {
      if (has_bit(operands, o) && varies(o) && !is_in_place(o)) return tile_length_;
    }
    return max(tile_length_, in_place_length_);
  }
  // Returns the number of blocks at whose multiples parts of the groups begin: tables have whole
  // runs.
  std::int64_t part_unit() const {
    std::int64_t unit = 1;
    for (int o = 0; o < operands_; ++o) {
      if (!has_table_[o]) continue;
      const std::int64_t run = loops_[o].run(), step = unit;
      while (unit * kSumBlock % run != 0) unit += step;
    }
    return unit;
  }

  // Loads a tile of operands, given as bits: sets its runs, of at least `shortest_run` elements,
  // and packs operands whose runs are shorter or not contiguous. Operands in `constant`,
  // as bits, are not packed where a run has one broadcast element. Returns at once if the tile is
  // the one loaded last.
  void load(unsigned int operands, std::int64_t begin, std::int64_t length,
            std::int64_t shortest_run = kOneRun, unsigned int constant = 0);

  // The runs of the loaded tile, in order.
  const TileRun* begin() const { return loaded_; }
  const TileRun* end() const { return loaded_ + run_count_; }
  // Calls visit(run) for the runs of the loaded tile, in order. GCC's code of a range-based loop
  // with a long body is up to 1.2 times slower.
  template <class Visit>
  DMLOPS_INLINE void for_each_run(const Visit& visit) const {
    for (const TileRun& run : *this) visit(run);
  }
  // Returns the elements of the loaded tile.
  std::int64_t length() const { return loaded_[run_count_].begin; }

  // Returns the address of a run of group k in an operand; for the output, that of its results.
  template <class T>
  DMLOPS_INLINE T* row(int operand, std::int64_t k, const TileRun& run) const {
    const bool is_packed = has_bit(packed_, operand);
    char* const first = is_packed ? buffer(operand) + k * pitch(operand) : groups_data_[operand][k];
    return reinterpret_cast<T*>(first + run.offsets[operand]);
  }

  // Returns the address of the only run of a tile, or of any run of a uniform operand.
  template <class T>
  DMLOPS_INLINE T* row(int operand, std::int64_t k) const {
    return row<T>(operand, k, loaded_[0]);
  }

  // Returns the bytes from a run of the loaded tile to the next one if that one does not follow it,
  // so that the hardware prefetcher does not either, and is unlikely to be cached; otherwise 0.
  DMLOPS_INLINE std::int64_t jump(int operand, const TileRun& run) const {
    const TileRun& next = *(&run + 1);
    const bool ends = next.begin == length();
    // Long runs of several inputs, or of several groups, would evict each other.
    const bool is_long = run.length > kTileElements && ((ends && ends_groups_) || reads_several_);
    if (is_cached_ || is_long || uniform(operand) || has_bit(packed_, operand)) return 0;
    const std::int64_t to = ends ? next_[operand] : next.offsets[operand];
    const std::int64_t bytes = to - run.offsets[operand];
    return bytes == run.length * size_ ? 0 : bytes;
  }

  // Unpacks the results of the loaded tile to the output, unless they were computed in place.
  void store(std::int64_t begin, std::int64_t length);

 private:
  // Bytes of the shortest run within which tiles lie: if runs are whole steps, or if small tiles
  // span the ends of runs, whose overhead equals packing 2048 bytes.
  static constexpr std::int64_t kShortestWholeRun = 512, kShortestSpannedRun = 2048;
  static constexpr std::int64_t kInPlaceBytes = 96 << 10;  // of such groups, of an operand
  static constexpr std::int64_t kTableEntries = 1024;
  // Runs of a long tile that begins at a run. Others have one more.
  static constexpr std::int64_t kMostRuns = kTileElements / kShortestRun;
  static_assert((kShortestRun - 1) * kGroupStep <= kTableEntries, "a tile has whole runs");
  static constexpr std::int64_t kRunsTogether = 4;  // of each group, if groups alternate in memory
  // Minimum of whole groups to pack where groups share cache lines.
  static constexpr std::int64_t kMinWholeGroups = 8;
  static constexpr std::int64_t kNone = -1;
  static constexpr std::int64_t kShortestInOrder = 192;  // bytes
  // Bytes; shorter rows share too many of their cache lines.
  static constexpr std::int64_t kShortestStreamed = 1024;
  // Shared rows that are aligned, and the fewest groups.
  static constexpr std::int64_t kShortestAlignedBytes = 1024, kManyGroups = 16;

  // The tile whose offsets a table has, of its runs or of its elements.
  struct Tabulated {
    std::int64_t begin = kNone, length;
  };

  // The tile whose runs runs_ has.
  struct SplitTile {
    std::int64_t begin, length;
    unsigned int packed;  // operands, as bits

    bool operator==(const SplitTile& other) const {
      return begin == other.begin && length == other.length && packed == other.packed;
    }
  };

  // True if an operand exists and has different elements in a group.
  bool varies(int o) const { return reduction_.data[o] != nullptr && !uniform_[o]; }
  // True if several operands, given as bits, have one element for each run.
  bool several_are_constant(unsigned int operands) const {
    int constant = 0;
    for (int o = 1; o < operands_; ++o)
      constant += has_bit(operands, o) && varies(o) && step(o) == 0 ? 1 : 0;
    return constant > 1;
  }
  // True if several inputs among operands, given as bits, differ from group to group.
  bool reads_several(unsigned int operands) const {
    int inputs = 0;
    for (int o = 1; o < operands_; ++o)
      inputs += has_bit(operands, o) && varies(o) && !shared_[o] ? 1 : 0;
    return inputs > 1;
  }
  std::int64_t inner_size() const { return elements_.sizes[elements_.rank - 1]; }
  // True if tiles have several runs of the innermost dimension.
  bool has_short_runs() const { return elements_.rank > 1 && inner_size() < kShortestRun; }
  // True if tiles lie within the runs of the innermost dimension.
  bool has_long_runs() const {
    const bool whole_steps = inner_size() % kGroupStep == 0;
    return inner_size() * size_ >= (whole_steps ? kShortestWholeRun : kShortestSpannedRun);
  }
  std::int64_t step(int o) const { return elements_.strides[o][elements_.rank - 1]; }
  // True if a group's elements are contiguous in an operand.
  bool is_dense(int o) const { return loops_[o].rank == 1 && step(o) == size_; }
  // True if a group's elements are contiguous in all operands that vary.
  DMLOPS_INLINE bool all_dense() const;
  // True if an operand that varies is read and written in place, as a whole or in runs.
  bool is_in_place(int o) const {
    return step(o) == size_ && (loops_[o].rank == 1 || !has_short_runs());
  }
  DMLOPS_INLINE bool all_in_place() const;
  // True if a tile's elements are contiguous in an operand.
  bool is_contiguous(int o, std::int64_t begin, std::int64_t length) const {
    const ElementLoops& loops = loops_[o];
    return step(o) == size_ && (loops.rank == 1 || begin % loops.run() + length <= loops.run());
  }
  // Returns the packed elements of an operand. Results replace those of the input.
  char* buffer(int o) const { return const_cast<char*>(buffers_) + slot(o) * buffer_bytes_; }
  static int slot(int o) { return o == 0 ? 0 : o - 1; }
  // True if an operand is packed run by run, rather than element by element or by transposition.
  bool packs_runs(int o) const {
    const bool side_by_side = kept_.rank > 0 && kept_.strides[o][0] == size_;
    return step(o) == 0 || (step(o) == size_ && !side_by_side);
  }
  // True if an operand is packed by transposition within each group: rows that lie side by side,
  // with the elements of the dimensions within the contiguous one.
  bool transposes(int o) const { return across_[o] != kNone; }
  // Returns the contiguous dimension of such an operand, or kNone.
  std::int64_t find_across(int o) const;
  // Returns the loops over the elements of such a row.
  ElementLoops row_loops(int o) const {
    const ElementLoops& loops = loops_[o];
    const int first = static_cast<int>(across_[o]) + 1;
    return {loops.rank - first, loops.sizes + first, loops.strides + first};
  }
  // Rows side by side in a tile, from its element i on: the first one is at `offset` in a group.
  // The elements of a row have `offsets`, or if null a step.
  struct RowBlock {
    std::int64_t offset;
    const std::int64_t* offsets;
    std::int64_t i, length, rows;
  };
  // Calls visit(block) for the blocks of such an operand in a tile. A row that the tile's ends cut
  // is a block of its own.
  template <class Visit>
  void for_each_transposed(int o, std::int64_t begin, std::int64_t length, const Visit& visit);
  // True if runs of several groups lie between those of a group.
  bool alternates(int o) const {
    return elements_.rank > 1 && kept_.rank > 0 && step(o) == size_ &&
           abs(kept_.strides[o][0]) < abs(elements_.strides[o][0]);
  }
  // The steps of the constructor, inlined since it takes much of a small call's time.
  DMLOPS_INLINE void describe_operand(int o);
  // Returns the number of groups that a tile holds or that share cache lines.
  DMLOPS_INLINE std::int64_t groups_sharing_lines() const;
  DMLOPS_INLINE void choose_tile_length();
  DMLOPS_INLINE void choose_tables();
  // Returns one past the last operand that may be packed, or 0 if one is not packed run by run.
  int buffers() const;
  // Selects whole groups that are not packed: several vectors of their numbers, as far as L2 has
  // the groups and their results.
  DMLOPS_INLINE void take_groups_in_place(Access access);
  // Returns the most elements of a tile that is in place.
  std::int64_t longest_in_place() const { return max(kTileElements, kMostRuns * inner_size()); }
  // Copies rows that all groups share to the place in a cache line that the output's rows begin at,
  // so that aligned stores go with aligned loads.
  void align_shared_rows();
  // Selects whole groups, at most `max_groups`, if the buffers hold at least `min_groups` of them;
  // 0 if groups are not packed.
  void take_whole_groups(std::int64_t max_groups, int buffers, std::int64_t min_groups);
  // Returns the number of elements that is whole runs and whole steps.
  static std::int64_t whole_steps(std::int64_t run) {
    return run * kGroupStep / min(run & -run, kGroupStep);
  }
  // Returns the largest number of elements up to `length` that is whole runs and whole steps, or
  // `length` if it has none.
  static std::int64_t in_whole_runs(std::int64_t length, std::int64_t run);
  // Makes tiles as long as the buffers, if operands are transposed of which a tile has few rows.
  void take_long_rows();
  std::int64_t pitch(int o) const { return shared_[o] ? 0 : tile_length_ * size_; }
  // Returns the bytes between groups, or 0 if they have no common step.
  std::int64_t common_step(int o) const {
    return common_ && kept_.rank > 0 ? kept_.strides[o][0] : 0;
  }

  // Returns the bytes to the groups that are selected next. Several dense inputs are read in the
  // order of memory, since their prefetches would evict each other.
  std::int64_t to_next_groups(int o) const {
    const std::int64_t group = count_ * size_;
    return reads_several_ && common_step(o) == group && is_dense(o) ? group
                                                                    : groups_ * common_step(o);
  }

  void select_operand(int o, std::int64_t first);
  // Returns the offsets of a tile's runs, or of its elements, which are the same for all groups.
  Source tabulate(int o, std::int64_t begin, std::int64_t length);
  void store_transposed(std::int64_t begin, std::int64_t length);
  void store_rows_of_groups(std::int64_t begin, std::int64_t length);
  void store_tabulated(std::int64_t begin, std::int64_t length);
  // Sets runs_ to those of a tile: runs of the innermost dimension, or of kTileElements.
  void set_runs(std::int64_t begin, std::int64_t length);
  // Sets the runs of the tile [begin, end), of the innermost dimension.
  void split(std::int64_t begin, std::int64_t end);
  void pack_tile(int o, std::int64_t begin, std::int64_t length);

  const Reduction& reduction_;
  const ReductionNest& elements_;
  const ReductionNest& kept_;
  const std::int64_t size_;  // of an element, in bytes
  const int operands_;
  std::int64_t count_ = 1, batch_, tile_length_, in_place_length_ = 0, groups_ = 0;
  bool streams_, is_cached_;
  bool in_order_;  // true if short runs of several groups are read nearly in the order of memory
  bool ends_groups_ = false, reads_several_ = false;  // of the loaded tile
  bool reads_runs_ = false;                           // true if runs are contiguous in an operand
  bool common_ = true;  // true if the selected groups have common steps
  unsigned int loaded_operands_ = 0;
  std::int64_t loaded_tile_ = kNone;  // its first element
  bool uniform_[kFirstGroupOperand], shared_[kFirstGroupOperand];
  char* aligned_rows_[kFirstGroupOperand] = {};   // copies of shared rows, or null
  std::int64_t packed_tile_[kFirstGroupOperand];  // first element of the packed tile, or kNone
  // The elements of a group in each operand, with dimensions merged as far as its strides allow.
  ElementLoops loops_[kFirstGroupOperand];
  std::int64_t sizes_[kFirstGroupOperand][kMaxRank], strides_[kFirstGroupOperand][kMaxRank];
  // Bytes from a run to the next one in each dimension, where the inner dimensions begin again.
  std::int64_t to_next_run_[kMaxRank][kFirstGroupOperand];
  bool has_table_[kFirstGroupOperand];  // true if tiles are packed through an offset table
  std::int64_t across_[kFirstGroupOperand];
  Tabulated tabulated_[kFirstGroupOperand];
  std::int64_t tables_[kFirstGroupOperand][kTableEntries];
  char* groups_data_[kReductionOperands][kTileGroups];  // the first element of each group
  TileRun* loaded_ = whole_;                            // the runs of the loaded tile
  int run_count_ = 0, split_count_ = 0;
  TileRun whole_[2];
  unsigned int split_ = 0;     // operands with several runs in the loaded tile, as bits
  unsigned int packed_ = 0;    // operands of which the loaded tile is packed
  unsigned int constant_ = 0;  // operands whose runs in the loaded tile have one element
  SplitTile split_tile_ = {kNone, 0, 0};
  std::int64_t next_[kFirstGroupOperand];  // offset of the element after the loaded tile
  TileRun runs_[ceil_div(kTileElements, kShortestOfConstants) + 2];  // with the run after the tile
  std::int64_t buffer_bytes_ = kTileElements * kMaxSize;             // of an operand
  alignas(kVectorBytes) char buffers_[kBufferBytes];
};

}  // namespace dmlops::DMLOPS_TARGET
