// Packs and unpacks tiles of reduction groups, compiled once for all reductions.
#include "kernels/blocks/group_tiles.hpp"

namespace dmlops::DMLOPS_TARGET {

Source GroupTiles::tabulate(int o, std::int64_t begin, std::int64_t length) {
  const ElementLoops& loops = loops_[o];
  const bool of_runs = packs_runs(o);
  const std::int64_t run = of_runs ? loops.run() : 1;  // of an entry
  Tabulated& table = tabulated_[o];
  const Source source = {nullptr, 0, step(o), tables_[o], run};
  if (table.begin == begin && table.length == length) return source;
  table = {begin, length};
  loops.list_offsets(of_runs ? loops.rank - 1 : loops.rank, begin / run, length / run, tables_[o]);
  return source;
}

template <class Visit>
void GroupTiles::for_each_transposed(int o, std::int64_t begin, std::int64_t length,
                                     const Visit& visit) {
  const ElementLoops& loops = loops_[o];
  const ElementLoops inner = row_loops(o);
  const std::int64_t row = inner.count(), rows = loops.sizes[across_[o]], end = begin + length;
  const bool has_step = inner.rank == 1;
  if (!has_step && tabulated_[o].begin == kNone) {
    inner.list_offsets(inner.rank, 0, row, tables_[o]);
    tabulated_[o].begin = 0;
  }
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t first = i % row;
    const std::int64_t whole = first == 0 ? min((end - i) / row, rows - i / row % rows) : 0;
    const std::int64_t count = whole > 0 ? row : min(row - first, end - i);
    const std::int64_t offset = loops.offset(has_step ? i : i - first);
    const std::int64_t* const offsets = has_step ? nullptr : tables_[o] + first;
    visit(RowBlock{offset, offsets, i - begin, count, max(whole, 1)});
    i += count * max(whole, 1);
  }
}

void GroupTiles::pack_tile(int o, std::int64_t begin, std::int64_t length) {
  if (packed_tile_[o] == begin) return;
  packed_tile_[o] = begin;
  const std::int64_t pitch = this->pitch(o);
  if (transposes(o)) {
    return for_each_transposed(o, begin, length, [&](const RowBlock& b) {
      for (std::int64_t k = 0; k < (pitch == 0 ? 1 : groups_); ++k)
        pack(size_, buffer(o) + k * pitch + b.i * size_, b.length * size_, b.length, b.rows,
             {groups_data_[o][k] + b.offset, size_, step(o), b.offsets});
    });
  }
  const std::int64_t group_step = common_step(o);
  const bool together = group_step != 0 && pitch != 0;
  const std::int64_t calls = together || pitch == 0 ? 1 : groups_, rows = together ? groups_ : 1;
  const std::int64_t run = loops_[o].run();
  const bool has_runs = begin % run == 0 && length % run == 0 && length / run <= kTableEntries;
  // Packs the elements from i on, which are at `offset` in each group.
  const auto pack_at = [&](std::int64_t offset, std::int64_t i, std::int64_t count, Source from) {
    from.pitch = group_step;
    for (std::int64_t k = 0; k < calls; ++k) {
      from.data = groups_data_[o][k] + offset;
      pack(size_, buffer(o) + i * size_ + k * pitch, pitch, count, rows, from);
    }
  };
  if (has_table_[o] || (packs_runs(o) && has_runs))
    return pack_at(0, 0, length, tabulate(o, begin, length));
  loops_[o].for_each_run(begin, begin + length,
                         [&](std::int64_t offset, std::int64_t i, std::int64_t count) {
                           pack_at(offset, i, count, {nullptr, 0, step(o)});
                         });
}

void GroupTiles::store(std::int64_t begin, std::int64_t length) {
  if ((packed_ & 1u) == 0) return;
  loaded_tile_ = packed_tile_[1] = kNone;  // the results have replaced the input
  if (transposes(0)) return store_transposed(begin, length);
  const bool side_by_side = common_step(0) == size_ && step(0) != size_ && groups_ > 1;
  if (has_table_[0])
    return side_by_side ? store_rows_of_groups(begin, length) : store_tabulated(begin, length);
  loops_[0].for_each_run(
      begin, begin + length, [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
        if (side_by_side)
          return pack(size_, groups_data_[0][0] + offset, step(0), groups_, run,
                      {buffer(0) + i * size_, size_, pitch(0), nullptr});
        for (std::int64_t k = 0; k < groups_; ++k) {
          const char* const results = buffer(0) + k * pitch(0) + i * size_;
          if (step(0) == size_) {
            copy_run(groups_data_[0][k] + offset, results, run * size_);
          } else {
            unpack(size_, groups_data_[0][k] + offset, step(0), nullptr, results, run);
          }
        }
      });
}

// Stores blocks of results, transposed: the columns of a block are rows of the output.
void GroupTiles::store_transposed(std::int64_t begin, std::int64_t length) {
  for_each_transposed(0, begin, length, [&](const RowBlock& b) {
    alignas(kVectorBytes) char columns[kTileElements * kMaxSize];
    for (std::int64_t k = 0; k < groups_; ++k) {
      char* target = groups_data_[0][k] + b.offset;
      Source rows = {buffer(0) + k * pitch(0) + b.i * size_, size_, b.length * size_};
      if (b.rows == 1) {
        unpack(size_, target, step(0), b.offsets, rows.data, b.length);
      } else if (b.offsets == nullptr) {
        pack(size_, target, step(0), b.rows, b.length, rows);
      } else {
        const std::int64_t at_once = kTileElements / b.length;
        for (std::int64_t r = 0, count; r < b.rows; r += count) {
          count = min(at_once, b.rows - r);
          pack(size_, columns, count * size_, count, b.length, rows);
          unpack(size_, target, size_, b.offsets, columns, b.length * count, count);
          rows.data += count * rows.step;
          target += count * size_;
        }
      }
    }
  });
}

// Stores the results of groups side by side, whose elements are at the offsets of a table: those of
// all groups for each element.
void GroupTiles::store_rows_of_groups(std::int64_t begin, std::int64_t length) {
  const Source elements = tabulate(0, begin, length);
  alignas(kVectorBytes) char columns[kTileElements * kMaxSize];
  pack(size_, columns, groups_ * size_, groups_, length, {buffer(0), size_, pitch(0)});
  unpack(size_, groups_data_[0][0], size_, elements.offsets, columns, length * groups_, groups_);
}

// Stores the results of each group in runs at the offsets of a table.
void GroupTiles::store_tabulated(std::int64_t begin, std::int64_t length) {
  const Source runs = tabulate(0, begin, length);
  const std::int64_t bytes = runs.run * size_;
  if (alternates(0) && common_ && groups_ > 1 && groups_ * bytes >= kShortestAlternate) {
    for (std::int64_t i = 0; i < length / runs.run; ++i)
      copy_runs<true>(groups_data_[0][0] + runs.offsets[i], buffer(0) + i * bytes,
                      SteppedOffsets{common_step(0)}, groups_, bytes, pitch(0));
    return;
  }
  for (std::int64_t k = 0; k < groups_; ++k)
    unpack(size_, groups_data_[0][k], 0, runs.offsets, buffer(0) + k * pitch(0), length, runs.run);
}

}  // namespace dmlops::DMLOPS_TARGET
