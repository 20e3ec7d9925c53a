// Moments down columns: one group per vector lane, up to 512 groups at once, with the sums of 64
// or 128 at a time. The bits are those of rows: row i of an array holds lane i of all sums.
#pragma once

#include "kernels/normalization/group_numbers.hpp"
#include "kernels/normalization/moment_column_operands.hpp"
#include "kernels/normalization/moment_column_sums.hpp"
#include "kernels/normalization/split_column_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// The maximum number of columns at once, of groups that are adjacent in all operands. Short groups
// have fewer, so that the numbers of all groups stay in L1.
constexpr std::int64_t kMaxColumns = 512, kShortGroup = 32, kMaxShortColumns = 128;

// Rows in place whose terms are added at once, with their sums in registers.
constexpr std::int64_t kRowsAtOnce = 256;
static_assert(kRowsAtOnce <= ColumnBlock<float>::kSharedRows);

template <class T, class Formula>
class MomentColumns : MomentColumnOperands<T, Formula> {
  using Operands = MomentColumnOperands<T, Formula>;

 public:
  MomentColumns(const Reduction& groups, const Formula& formula) : Operands(groups, formula) {}

  void run() {
    const auto compute = [&](std::int64_t first, std::int64_t columns) {
      select(first, columns);
      for_each_block([&](std::int64_t c, std::int64_t count) { reduce(c, count); },
                     block_.count() <= kRowsAtOnce ? kColumns : kSumColumns);
      finish(0, block_.count());
      report();
    };
    const std::int64_t most = block_.count() <= kShortGroup ? kMaxShortColumns : kMaxColumns;
    block_.for_each_selection(compute, is_adjacent() ? most : 0);
  }

  // Adds up sweep s of some lanes, where groups have several columns; `moments` has the numbers of
  // the groups.
  template <class Sums, class Moments>
  void add_up_split(int s, Sums& sums, const RowLanes& lanes, const Moments& moments,
                    const SplitGroups& groups) {
    lanes_ = lanes;
    for_each_split(moments, groups, [&](std::int64_t first) {
      for_each_block([&](std::int64_t c, std::int64_t count) {
        if (!needs_sweep(s, c, count)) return;
        sums.select(first + c, count, [&](std::int64_t i) { return first + column(c + i); });
        add_up(sums, s, c, count);
      });
    });
  }
  // Writes the results of such groups, of a part of the rows.
  template <class Moments>
  void finish_split(std::int64_t part, const Moments& moments, const SplitGroups& groups) {
    for_each_split(moments, groups, [&](std::int64_t) { finish_part(part); });
  }

  // Computes a part of a stage: the sums of sweep `stage` or, after the sweeps, the results. The
  // stage after these reports.
  void run_part(int stage, std::int64_t part) {
    const std::int64_t columns = groups_.end - groups_.first, parts = groups_.parts;
    block_.select(groups_.first, columns);
    select(groups_.first, columns);
    begin(0, columns);
    for (int s = 0; formula_.reduces() && s < Formula::kSweeps; ++s) {
      sums_.share(groups_.part_sums, s);
      const bool needed = needs_sweep(s, 0, columns);
      if (s == stage) {
        lanes_ = {kMomentLanes * part / parts, kMomentLanes * (part + 1) / parts, kMomentLanes};
        if (needed) add_up(sums_, s, 0, columns);
        return;
      }
      if (!needed) continue;
      with_constant(s > 0 || formula_.sums_elements(), [&](auto sums_elements) {
        sums_.template fold_shared<decltype(sums_elements)::value ? 0 : 1>(
            block_.count(), columns,
            [this, s](std::int64_t c) { return moments_.needs_vector(s, c); });
      });
      end(s, 0, columns);
    }
    if (stage < Formula::kSweeps) return;
    if (stage > Formula::kSweeps) return report();
    finish_part(part);
    if (block_.streaming()) finish_non_temporal();
  }

 private:
  using Operands::bias_;
  using Operands::block_;
  using Operands::column;
  using Operands::formula_;
  using Operands::groups_;
  using Operands::in_place_;
  using Operands::is_adjacent;
  using Operands::load_parameters;
  using Operands::load_rows;
  using Operands::rows_at;
  using Operands::scale_;
  using typename Operands::At;
  using typename Operands::OperandRows;

  using Numbers = typename Formula::Numbers;
  using W = typename Formula::W;
  using Vector = typename Formula::Vector;
  static constexpr int kSums = Formula::kSums;

  void select(std::int64_t first, std::int64_t columns) {
    first_ = first;
    Operands::select_others(first, columns);
  }

  // Calls visit(c, count) for each `block` columns.
  template <class Visit>
  void for_each_block(const Visit& visit, std::int64_t block = kColumns) const {
    for (std::int64_t c = 0; c < block_.columns(); c += block)
      visit(c, min(block_.columns() - c, block));
  }

  // Writes the numbers of the groups, after all reads, since outputs may share the memory of
  // inputs.
  void report() {
    Formula::for_each_output([&](int operand, f64x Numbers::*number) {
      if (groups_.data[operand] == nullptr) return;
      for_each_block([&](std::int64_t first, std::int64_t count) {
        alignas(kVectorBytes) T numbers[kColumns];
        const std::int64_t begin = first_column(first, count);
        for_each_vector(count, [&](std::int64_t c) {
          store(numbers + (column(first + c) - begin),
                canonical_nan(rounded(moments_.numbers(first + c, number))));
        });
        store_numbers<T>(groups_, operand, first_ + begin, first + count - begin, numbers);
      });
    });
  }
  // Returns the first column of the vectors of the block of `count` columns from `first` on.
  std::int64_t first_column(std::int64_t first, std::int64_t count) const {
    return min(first, column(first + (count - 1) / kFloatLanes * kFloatLanes));
  }

  void reduce(std::int64_t first, std::int64_t columns) {
    for (std::int64_t c = 0; c < columns; c += kColumns)
      begin(first + c, min(columns - c, kColumns));
    for (int s = 0; formula_.reduces() && s < Formula::kSweeps; ++s) {
      if (!needs_sweep(s, first, columns)) continue;
      add_up(sums_, s, first, columns);
      end(s, first, columns);
    }
  }

  // Calls visit(first column) for each selection of columns, with the numbers of their groups.
  template <class Moments, class Visit>
  void for_each_split(const Moments& moments, const SplitGroups& groups, const Visit& visit) {
    const auto compute = [&](std::int64_t first, std::int64_t columns) {
      select(first, columns);
      first -= groups.first;
      for_each_vector(columns, [&](std::int64_t c) {
        for (std::int64_t j = 0; j < kFloatLanes; ++j)
          moments_.set(c + j, moments, (first + min(column(c) + j, columns - 1)) / groups.columns);
      });
      visit(first);
    };
    block_.for_each_selection(compute, is_adjacent() ? kMaxColumns : 0);
  }

  void begin(std::int64_t first, std::int64_t columns) {
    alignas(kVectorBytes) double numbers[Formula::kGroupOperandsEnd][kColumns];
    const std::int64_t from = first_column(first, columns);
    if constexpr (Formula::kScale == 0) {  // otherwise scale_ and bias_ have them
      Formula::for_each_group_operand([&](int operand) {
        load_numbers<T>(groups_, operand, first_ + from, first + columns - from, numbers[operand]);
      });
    }
    moments_.begin(formula_, first, round_up(columns, kFloatLanes),
                   [&](int operand, std::int64_t c) {
                     const std::int64_t half = c % kFloatLanes;
                     return load<f64x>(numbers[operand] + (column(first + c - half) + half - from));
                   });
  }

  bool needs_sweep(int s, std::int64_t first, std::int64_t columns) const {
    bool needed = false;
    for_each_vector(
        columns, [&](std::int64_t c) { needed = needed || moments_.needs_vector(s, first + c); });
    return needed;
  }

  // Adds up sweep s of the selection's columns from `first` on.
  template <class Sums>
  void add_up(Sums& sums_of, int s, std::int64_t first, std::int64_t columns) {
    if (s == 0) {
      return with_constant(formula_.sums_elements(), [&](auto sums_elements) DMLOPS_LAMBDA_INLINE {
        constexpr bool kElements = decltype(sums_elements)::value;
        add_up<kElements ? 0 : 1>(sums_of, s, first, columns,
                                  [](std::int64_t) DMLOPS_LAMBDA_INLINE {
                                    return [](const At& at, Vector* sums) DMLOPS_LAMBDA_INLINE {
                                      Formula::template add_products<kElements>(at, sums);
                                    };
                                  });
      });
    }
    add_up<0>(sums_of, s, first, columns, [this, first](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const typename W::Minus minus_center(moments_.numbers(first + c, &Numbers::center));
      return [minus_center](const At& at, Vector* sums)
                 DMLOPS_LAMBDA_INLINE { Formula::add_deviations(minus_center, at, sums); };
    });
  }

  void end(int s, std::int64_t first, std::int64_t columns) {
    moments_.end(formula_, s, first, round_up(columns, kFloatLanes), block_.count(),
                 [&](int sum, std::int64_t c) DMLOPS_LAMBDA_INLINE {
                   const Doubles& total = sums_.totals(c)[sum];
                   return *(c % kFloatLanes == 0 ? &total.lower : &total.upper);
                 });
  }

  // terms(c) creates the function that adds terms of the vector of columns at first + c.
  template <int kFirst, class Sums, class MakeTerms>
  DMLOPS_INLINE void add_up(Sums& sums_of, int s, std::int64_t first, std::int64_t columns,
                            const MakeTerms& terms) {
    if (in_place_) {
      add_up_rows<kRowsAtOnce, kFirst>(sums_of, s, first, columns, terms);
    } else {
      add_up_rows<kBlockRows, kFirst>(sums_of, s, first, columns, terms);
    }
  }
  template <std::int64_t kRows, int kFirst, class Sums, class MakeTerms>
  DMLOPS_INLINE void add_up_rows(Sums& sums_of, int s, std::int64_t first, std::int64_t columns,
                                 const MakeTerms& terms) {
    const bool packed = !block_.in_place();
    const auto make_add = [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const std::int64_t here = column(first + c);
      return [this, here, packed, add_terms = terms(c), rows = rows_at(here)](
                 std::int64_t r, Vector* sums) DMLOPS_LAMBDA_INLINE {
        // Not constexpr: Clang would warn of captures that one form does not use.
        if (kRows == kBlockRows && packed) block_.prefetch_next(r, here);
        add_terms(At{rows, r}, sums);
      };
    };
    const auto load_block = [&](std::int64_t begin) { load_rows(s, begin, kRows, lanes_); };
    const auto is_needed = [&](std::int64_t c)
                               DMLOPS_LAMBDA_INLINE { return moments_.needs_vector(s, first + c); };
    sums_of.template add_up<kRows, kFirst>(block_.count(), columns, lanes_, is_needed, load_block,
                                           make_add);
  }

  void finish_part(std::int64_t part) {
    const std::int64_t blocks = block_.blocks(), parts = groups_.parts;
    finish(kBlockRows * (blocks * part / parts),
           min(block_.count(), kBlockRows * (blocks * (part + 1) / parts)));
  }
  // The terms of the results of the selected columns.
  template <class Results>
  struct ColumnResults {
    Results of[kMaxColumns / kFloatLanes];
    LinearGroups linear[kMaxColumns / kFloatLanes];
  };
  // Results of `count` of the loaded rows, from row `first` on, to be stored `pitch` bytes apart.
  template <class Element>
  struct TargetRows {
    Element* target;
    std::int64_t pitch, first, count;
  };

  // Sets the terms of the results of each vector of columns.
  template <auto kKind, class Results>
  void set_results(ColumnResults<Results>& results) {
    // Otherwise results may replace them in another part.
    if constexpr (Results::kLoadsParameters) load_parameters(0, 1);
    for_each_vector(block_.columns(), [&](std::int64_t c) {
      const Numbers* const numbers = moments_.vectors() + c / kLanes<f64x>;
      const auto factors = [&](int half) {
        return formula_.template factors<kKind>(numbers[half], [&](int operand) {
          const auto& numbers_of = operand == Formula::kScale ? scale_ : bias_;
          const T* const row = row_of<T>(numbers_of.rows_at(column(c)), 0);
          const Doubles both = to_double(load<f32x>(row));
          return half == 0 ? both.lower : both.upper;
        });
      };
      const auto lower = factors(0), upper = factors(1);
      const std::int64_t v = c / kFloatLanes;
      const BothOf<typename Formula::Factors> both = {lower, upper};
      results.of[v].set_linear(both);
      results.of[v].set_wide(both);
      results.linear[v] = LinearGroups(lower.is_linear, upper.is_linear);
    });
  }
  // Computes the results of the elements [from, to) of the groups.
  void finish(std::int64_t from, std::int64_t to) {
    formula_.with_kind([&](auto kind) { finish<decltype(kind)::value>(from, to); });
  }
  template <auto kKind>
  void finish(std::int64_t from, std::int64_t to) {
    ColumnResults<typename Formula::template Results<kKind>> results;
    set_results<kKind>(results);
    const std::int64_t rows_at_once =
        in_place_ ? kBlockRows * kColumns / max(block_.columns(), std::int64_t{kColumns})
                  : kBlockRows;
    for (std::int64_t begin = from; begin < to; begin += rows_at_once) {
      const std::int64_t count = min(rows_at_once, to - begin);
      load_rows(Formula::kSweeps, begin, count);
      load_parameters(begin, count);
      if (formula_.activates()) {
        alignas(kVectorBytes) float normalized[kBlockRows * kColumns];
        const std::int64_t columns = block_.columns(), width = block_.fills_vectors()
                                                                   ? columns
                                                                   : round_up(columns, kFloatLanes);
        const std::int64_t pitch = width * std::int64_t{sizeof(float)};
        write(results, TargetRows<float>{normalized, pitch, 0, count});
        formula_.activate(normalized, count * width);
        store_activated(begin, count, normalized, width);
      } else {
        block_.store_results(begin, count,
                             [&](char* target, std::int64_t pitch, std::int64_t first,
                                 std::int64_t rows) DMLOPS_LAMBDA_INLINE {
                               T* const row = reinterpret_cast<T*>(target);
                               write(results, TargetRows<T>{row, pitch, first, rows});
                             });
      }
    }
  }
  // Writes the results of all columns: of vectors whose results are all linear, then in order of
  // the others, of which those without linear results are computed several at a time.
  template <class Results, class Element>
  DMLOPS_INLINE void write(const ColumnResults<Results>& results,
                           const TargetRows<Element>& rows) const {
    const auto linear = [&](std::int64_t c) -> const LinearGroups& {
      return results.linear[c / kFloatLanes];
    };
    const std::int64_t columns = block_.columns();
    // Origins do not count: two vectors of float16 gradients together, instead of four, were up to
    // 1.15 times slower.
    for_each_several<vectors_together(W::kTerms * Results::kCoefficients)>(
        columns, [&](std::int64_t c) { return linear(c).all; },
        [&](std::int64_t c, auto indices) DMLOPS_LAMBDA_INLINE {
          write_several(results, rows, c, indices,
                        [](Results& terms, const At& at)
                            DMLOPS_LAMBDA_INLINE { return terms.linear(at); });
        });
    for_each_several<vectors_together(int{sizeof(Vector)} / kVectorBytes * Results::kWide)>(
        columns, [&](std::int64_t c) { return !linear(c).any; },
        [&](std::int64_t c, auto indices) DMLOPS_LAMBDA_INLINE {
          write_several(results, rows, c, indices,
                        [](Results& terms, const At& at)
                            DMLOPS_LAMBDA_INLINE { return terms.wide(at); });
        },
        [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
          if (linear(c).all) return;
          const i32x mask = linear(c).mask;
          write_several(results, rows, c, std::index_sequence<0>(),
                        [mask](Results& terms, const At& at) DMLOPS_LAMBDA_INLINE {
                          return mask ? terms.linear(at) : terms.wide(at);
                        });
        });
  }
  // Writes result(terms, at) of the vectors of columns from c on.
  template <class Results, class Element, class Result, std::size_t... kIndex>
  DMLOPS_INLINE void write_several(const ColumnResults<Results>& results,
                                   const TargetRows<Element>& rows, std::int64_t c,
                                   std::index_sequence<kIndex...>, const Result& result) const {
    constexpr int kCount = sizeof...(kIndex);
    const std::int64_t columns[] = {column(c + static_cast<std::int64_t>(kIndex) * kFloatLanes)...};
    const OperandRows operands[] = {rows_at(columns[kIndex])...};
    Results terms[] = {results.of[c / kFloatLanes + static_cast<std::int64_t>(kIndex)]...};
    char* row = reinterpret_cast<char*>(rows.target);
    for (std::int64_t r = rows.first; r < rows.first + rows.count; ++r, row += rows.pitch) {
      f32x stored[kCount];
#pragma GCC unroll 16
      for (int v = 0; v < kCount; ++v)
        stored[v] = canonical_nan(result(terms[v], At{operands[v], r}));
#pragma GCC unroll 16
      for (int v = 0; v < kCount; ++v)
        store(reinterpret_cast<Element*>(row) + columns[v], stored[v]);
    }
  }

  // Stores `count` rows from `begin` on of results in float32, which are `width` apart.
  void store_activated(std::int64_t begin, std::int64_t count, const float* results,
                       std::int64_t width) {
    block_.store_results(
        begin, count, [&](char* target, std::int64_t pitch, std::int64_t first, std::int64_t rows) {
          const float* row = results + first * width;
          for (std::int64_t r = 0; r < rows; ++r, target += pitch, row += width) {
            for_each_vector(block_.columns(), [&](std::int64_t c) {
              store(reinterpret_cast<T*>(target) + column(c), load<f32x>(row + column(c)));
            });
          }
        });
  }

  MomentColumnSums<kSums, Vector> sums_;
  RowLanes lanes_;          // the lanes whose terms are added up
  std::int64_t first_ = 0;  // the first selected group
  GroupMoments<Formula, kMaxColumns> moments_;
};

}  // namespace dmlops::DMLOPS_TARGET
