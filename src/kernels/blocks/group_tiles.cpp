// The shapes of tiles of reduction groups, compiled once for all reductions.
#include "kernels/blocks/group_tiles.hpp"

namespace dmlops::DMLOPS_TARGET {

GroupTiles::GroupTiles(const Reduction& reduction, std::int64_t element_size, Access access,
                       int operands)
    : reduction_(reduction),
      elements_(reduction.elements),
      kept_(reduction.kept),
      size_(element_size),
      operands_(operands) {
  for (int d = 0; d < elements_.rank; ++d) count_ *= elements_.sizes[d];
  for (int o = 0; o < operands_; ++o) describe_operand(o);
  const std::int64_t run = inner_size(), sharing_lines = groups_sharing_lines();
  batch_ = sharing_lines;
  // The hardware prefetcher follows the runs of groups that alternate in memory if they are read
  // together.
  const bool alternate = alternates(1);
  const bool packed_once =
      count_ <= kTileElements && (access == Access::in_runs ? has_short_runs() : !has_long_runs());
  if (alternate && !packed_once)
    batch_ = max(batch_, min(kTileElements / kRunsTogether / run, kept_.sizes[0]));
  batch_ = min(batch_, kTileGroups);
  choose_tile_length();
  const std::int64_t bytes = 2 * (reduction.end - reduction.first) * count_ * size_;
  is_cached_ = bytes <= kLikelyCached;
  // Half, since the lines of a run must stay until the next group is read.
  in_order_ = alternate && bytes > kLikelyCached / 2 && !has_long_runs();
  if (!in_order_)
    in_place_length_ = in_whole_runs(batch_ > 1 ? kTileElements : longest_in_place(), run);
  const bool takes_runs = access == Access::in_runs && all_in_place() && !in_order_;
  if (reduction.parts == 1 && (all_dense() || takes_runs)) take_groups_in_place(access);
  choose_tables();
  if (alternate && packed_once && buffers() > 0 && count_ / run <= kTableEntries)
    take_whole_groups(min(kTileGroups, max(batch_, kept_.sizes[0])), buffers(), 1);
  if (access == Access::whole && !has_short_runs()) {
    const bool in_place = has_long_runs() && step(0) == size_ && step(1) == size_;
    const bool are_packed = !is_dense(0) || !is_dense(1);
    // Groups that share cache lines are packed together.
    const std::int64_t min_groups = are_packed ? min(sharing_lines, kMinWholeGroups) : 0;
    if (!are_packed || !in_place) take_whole_groups(kTileGroups, 2, min_groups);
  }
  take_long_rows();
  streams_ = reduction.streaming && step(0) == size_ &&
             min(tile_length_, run) * size_ >= kShortestStreamed;
}

void GroupTiles::describe_operand(int o) {
  packed_tile_[o] = kNone;
  loops_[o] = element_loops(reduction_, o).merged(sizes_[o], strides_[o]);
  across_[o] = find_across(o);
  reads_runs_ = reads_runs_ || (reduction_.data[o] != nullptr && step(o) == size_);
  uniform_[o] = o > 1 && has_no_strides(elements_, o);
  shared_[o] = o > 1 && has_no_strides(kept_, o);
  std::int64_t back = 0;  // to the first run of the inner dimensions
  for (int d = elements_.rank - 2; d >= 0; --d) {
    const std::int64_t stride = elements_.strides[o][d];
    to_next_run_[d][o] = stride - back;
    back += (elements_.sizes[d] - 1) * stride;
  }
}

std::int64_t GroupTiles::groups_sharing_lines() const {
  std::int64_t groups = max(kTileElements / round_up(count_, kGroupStep), 1);
  for (int o = 0; o < operands_ && kept_.rank > 0; ++o) {
    if (!varies(o) || shared_[o] || step(o) == size_) continue;
    // Groups that are nearer than the elements of a group share cache lines.
    if (abs(kept_.strides[o][0]) >= min(kLineBytes, nearest_elements(loops_[o]))) continue;
    // Tiles of a line suffice where long groups are contiguous in the input alone.
    if (o != 1 && groups >= 4) continue;
    groups = max(groups, min(o == 1 ? kTileGroups : kLineBytes / size_, kept_.sizes[0]));
  }
  return groups;
}

void GroupTiles::choose_tile_length() {
  const std::int64_t run = inner_size();
  tile_length_ = kTileElements / batch_ / kGroupStep * kGroupStep;
  if (has_short_runs()) {  // in whole runs
    const std::int64_t unit = whole_steps(run);
    // Tables have an entry for each run or, of an operand that is not packed by runs, each element.
    bool by_elements = false;
    for (int o = 0; o < operands_; ++o) {
      const bool has_offsets = !packs_runs(o) && !transposes(o);
      by_elements = by_elements || (reduction_.data[o] != nullptr && has_offsets);
    }
    const std::int64_t longest = kTableEntries * (by_elements ? 1 : run);
    tile_length_ = max(min(tile_length_, longest) / unit * unit, unit);
    batch_ = min(batch_, kTileElements / tile_length_);
  } else {
    tile_length_ = in_whole_runs(tile_length_, run);
  }
  tile_length_ = min(tile_length_, count_);
}

void GroupTiles::choose_tables() {
  for (int o = 0; o < operands_; ++o) {
    has_table_[o] = has_short_runs() && loops_[o].run() < kShortestRun && !transposes(o);
    // Tables have whole runs.
    if (has_table_[o] && tile_length_ % loops_[o].run() != 0)
      loops_[o] = element_loops(reduction_, o);
  }
}

bool GroupTiles::all_in_place() const {
  bool all = true;
  for (int o = 0; o < operands_; ++o) all = all && (!varies(o) || is_in_place(o));
  return all;
}

bool GroupTiles::all_dense() const {
  bool all = true;
  for (int o = 0; o < operands_; ++o) all = all && (!varies(o) || is_dense(o));
  return all;
}

int GroupTiles::buffers() const {
  int end = 0;
  for (int o = 0; o < operands_; ++o) {
    if (!varies(o)) continue;
    if (!packs_runs(o)) return 0;
    end = o + 1;
  }
  return end;
}

void GroupTiles::take_whole_groups(std::int64_t max_groups, int buffers, std::int64_t min_groups) {
  const std::int64_t bytes = kBufferBytes / buffers / kLineBytes * kLineBytes;
  const std::int64_t available = min_groups > 0 ? bytes : kBufferBytes;
  const std::int64_t fitting = min(max_groups, available / (count_ * size_));
  if (fitting < min_groups) return;
  tile_length_ = count_;
  batch_ = max(fitting, 1);
  buffer_bytes_ = bytes;
}

void GroupTiles::take_groups_in_place(Access access) {
  constexpr std::int64_t lanes = kLanes<f64x>;  // of the groups' numbers
  const std::int64_t longest = access == Access::in_runs ? longest_in_place() : kTileElements;
  const std::int64_t groups = min(kTileGroups, kInPlaceBytes / (count_ * size_));
  if (count_ > longest || groups == 0) return;
  batch_ = groups < lanes ? groups : groups / lanes * lanes;
  in_place_length_ = count_;
  if (count_ <= kTileElements) tile_length_ = count_;
  if (all_dense()) align_shared_rows();
}

void GroupTiles::align_shared_rows() {
  const std::int64_t bytes = count_ * size_;
  const bool vectors_fill_lines = kFloatLanes * size_ >= kLineBytes;
  const bool rows_align = kept_.rank == 1 && kept_.strides[0][0] % kLineBytes == 0;
  const bool pays =
      reduction_.end - reduction_.first >= kManyGroups && bytes >= kShortestAlignedBytes;
  const bool fits = bytes + kLineBytes <= buffer_bytes_;
  if (reduction_.data[0] == nullptr || !vectors_fill_lines || !rows_align || !pays || !fits) return;
  const std::int64_t past = bytes_past_line(reduction_.data[0]);
  for (int o = 2; o < operands_; ++o) {
    if (!varies(o) || !shared_[o] || bytes_past_line(reduction_.data[o]) == past) continue;
    aligned_rows_[o] = buffer(o) + past;
    std::memcpy(aligned_rows_[o], reduction_.data[o], static_cast<std::size_t>(bytes));
  }
}

std::int64_t GroupTiles::in_whole_runs(std::int64_t length, std::int64_t run) {
  const std::int64_t unit = whole_steps(run);
  return unit <= length ? length / unit * unit : length;
}

void GroupTiles::take_long_rows() {
  std::int64_t longest = 0;
  int slots = 1;
  for (int o = 0; o < operands_; ++o) {
    if (!varies(o)) continue;
    slots = slot(o) + 1;
    if (transposes(o)) {
      longest = max(longest, row_loops(o).count());
    } else if ((loops_[o].rank > 1 && step(o) != 0) || has_table_[o]) {
      return;
    }
  }
  if (batch_ > 1 || longest * (kLineBytes / size_) <= tile_length_) return;
  const std::int64_t bytes = kBufferBytes / slots / kLineBytes * kLineBytes;
  const std::int64_t length = in_whole_runs(bytes / size_ / kGroupStep * kGroupStep, longest);
  if (length <= tile_length_) return;
  tile_length_ = min(length, count_);
  buffer_bytes_ = bytes;
}

std::int64_t GroupTiles::select(std::int64_t first) {
  loaded_tile_ = kNone;
  groups_ = min(batch_, reduction_.end - first);
  if (kept_.rank > 1 && kept_.sizes[0] >= kGroupStep)
    groups_ = min(groups_, kept_.sizes[0] - first % kept_.sizes[0]);
  common_ = kept_.rank == 0 || first % kept_.sizes[0] + groups_ <= kept_.sizes[0];
  for (int o = 0; o < kReductionOperands; ++o) {
    if (reduction_.data[o] == nullptr) continue;
    if (o < operands_ && !shared_[o]) packed_tile_[o] = kNone;
    select_operand(o, first);
  }
  return groups_;
}

void GroupTiles::load(unsigned int operands, std::int64_t begin, std::int64_t length,
                      std::int64_t shortest_run, unsigned int constant) {
  if (begin == loaded_tile_ && operands == loaded_operands_ && length == this->length()) return;
  loaded_tile_ = begin;
  loaded_operands_ = operands;
  const std::int64_t end = begin + length;
  ends_groups_ = end == count_;
  reads_several_ = reads_several(operands);
  const bool splits = elements_.rank > 1 && inner_size() >= shortest_run;
  split_ = packed_ = constant_ = 0;
  for (int o = 0; o < operands_; ++o) {
    whole_[0].offsets[o] = next_[o] = 0;
    if (!has_bit(operands, o) || !varies(o)) continue;
    if (!is_cached_) next_[o] = end < count_ ? loops_[o].offset(end) : to_next_groups(o);
    const bool repeats =
        step(o) == 0 && has_bit(constant, o) && length <= kTileElements;  // as runs_ has runs
    const bool in_run = begin % loops_[o].run() + length <= loops_[o].run();
    if (is_contiguous(o, begin, length) || (repeats && in_run)) {
      whole_[0].offsets[o] = loops_[o].offset(begin);
      constant_ |= (repeats ? 1u : 0u) << o;
    } else if (splits && (step(o) == size_ || repeats) && packed_tile_[o] != begin) {
      split_ |= 1u << o;
      constant_ |= (repeats ? 1u : 0u) << o;
    } else {
      packed_ |= 1u << o;
      if (o > 0) pack_tile(o, begin, length);
    }
  }
  if (split_ == 0 && (packed_ == 0 || length <= kTileElements)) {
    run_count_ = 1;
    loaded_ = whole_;
    whole_[0].begin = 0;
    whole_[0].length = length;
  } else {
    loaded_ = runs_;
    set_runs(begin, length);
  }
  loaded_[run_count_].begin = length;
}

void GroupTiles::set_runs(std::int64_t begin, std::int64_t length) {
  if (split_ != 0) {
    const SplitTile tile = {begin, length, packed_};
    if (!(tile == split_tile_)) split(begin, begin + length);
    split_tile_ = tile;
    run_count_ = split_count_;
    return;
  }
  split_tile_.begin = kNone;
  run_count_ = 0;
  for (std::int64_t i = 0; i < length; i += kTileElements) {
    TileRun& run = runs_[run_count_++];
    run.begin = i;
    run.length = min(kTileElements, length - i);
    for (int o = 0; o < operands_; ++o)
      run.offsets[o] = whole_[0].offsets[o] + (uniform(o) ? 0 : i * size_);
  }
}

void GroupTiles::split(std::int64_t begin, std::int64_t end) {
  const int inner = elements_.rank - 1;
  const std::int64_t size = elements_.sizes[inner], skipped = begin % size;
  std::int64_t index[kMaxRank], row = begin / size;
  for (int d = inner - 1; d >= 0; --d) {
    index[d] = row % elements_.sizes[d];
    row /= elements_.sizes[d];
  }
  TileRun* run = runs_;
  run->begin = 0;
  run->length = min(size - skipped, end - begin);
  for (int o = 0; o < operands_; ++o) {
    run->offsets[o] = 0;
    for (int d = 0; d < inner; ++d) run->offsets[o] += index[d] * elements_.strides[o][d];
  }
  for (std::int64_t i = run->length, length = end - begin; i < length; i += run->length) {
    const TileRun& last = *run++;
    int d = inner - 1;
    for (; ++index[d] == elements_.sizes[d]; --d) index[d] = 0;
    run->begin = i;
    run->length = min(size, length - i);
    for (int o = 0; o < operands_; ++o) run->offsets[o] = last.offsets[o] + to_next_run_[d][o];
  }
  split_count_ = static_cast<int>(run - runs_) + 1;
  for (int o = 0; o < operands_; ++o) {
    if (uniform_[o]) continue;
    runs_[0].offsets[o] += skipped * step(o);
    for (int r = 0; has_bit(packed_, o) && r < split_count_; ++r)
      runs_[r].offsets[o] = runs_[r].begin * size_;
  }
}

void GroupTiles::select_operand(int o, std::int64_t first) {
  if (o < operands_ && aligned_rows_[o] != nullptr) {
    for (std::int64_t k = 0; k < groups_; ++k) groups_data_[o][k] = aligned_rows_[o];
    return;
  }
  OperandGroups<kTileGroups> groups;
  groups.select(kept_, o, first, groups_);
  for (int r = 0; r < groups.run_count; ++r) {
    char* data = reduction_.data[o] + groups.runs[r].offset;
    char** const run = groups_data_[o] + groups.runs[r].first;
    for (std::int64_t k = 0; k < groups.runs[r].count; ++k, data += groups.step) run[k] = data;
  }
}

std::int64_t GroupTiles::find_across(int o) const {
  constexpr std::int64_t kSmallest = 32;  // elements
  const ElementLoops& loops = loops_[o];
  if (abs(step(o)) <= size_) return kNone;
  std::int64_t row = 1;  // elements
  for (int d = loops.rank - 2; d >= 0; --d) {
    row *= loops.sizes[d + 1];
    if (loops.strides[d] != size_) continue;
    const bool has_step = d == loops.rank - 2;
    const bool can_index = has_step ? o > 0 || step(0) > 0 : row <= kTableEntries;
    return can_index && row * loops.sizes[d] >= kSmallest ? d : kNone;
  }
  return kNone;
}

}  // namespace dmlops::DMLOPS_TARGET
