// Moments down columns: up to 64 groups at once, one per vector lane. The bits are those of rows:
// row i of an array holds lane i of all sums.
#pragma once

#include "kernels/blocks/column_block.hpp"
#include "kernels/normalization/moments.hpp"

namespace dmlops::DMLOPS_TARGET {

// An operand's elements of up to 64 groups. Elements that are broadcast to their group are a single
// row.
template <class T>
class ColumnOperand {
 public:
  ColumnOperand(const Reduction& groups, int operand)
      : exists_(operand != 0 && groups.data[operand] != nullptr),
        uniform_(has_no_strides(groups.elements, operand)),
        shared_(has_no_strides(groups.kept, operand)),
        loops_(uniform_ ? ElementLoops{1, kOne, kOne + 1} : element_loops(groups, operand)),
        block_(groups, loops_, loops_, operand) {}

  void select(std::int64_t first, std::int64_t columns) {
    // Groups that share all elements are selected once.
    if (exists_ && !(shared_ && columns <= block_.columns())) block_.select(first, columns);
  }
  void load(std::int64_t block) {
    if (!exists_) return;
    rows_ = block_.in_place_or_loaded(uniform_ ? 0 : block);
    if (uniform_) rows_.pitch = 0;
  }
  DMLOPS_INLINE const T* row(std::int64_t r, std::int64_t c) const {
    return reinterpret_cast<const T*>(rows_.data + r * rows_.pitch) + c;
  }

 private:
  static constexpr std::int64_t kOne[] = {1, 0};  // the size and the stride of one element

  static bool has_no_strides(const ReductionNest& nest, int operand) {
    for (int d = 0; d < nest.rank; ++d) {
      if (nest.strides[operand][d] != 0) return false;
    }
    return true;
  }

  const bool exists_, uniform_, shared_;
  const ElementLoops loops_;
  ColumnBlock<T> block_;
  typename ColumnBlock<T>::Rows rows_ = {};
};

template <class T, class Formula>
class MomentColumns {
 public:
  MomentColumns(const Reduction& groups, const Formula& formula)
      : groups_(groups),
        formula_(formula),
        in_(element_loops(groups, 1)),
        out_(element_loops(groups, 0)),
        block_(groups, in_, out_),
        second_(groups, Formula::kSecond),
        scale_(groups, Formula::kScale),
        bias_(groups, Formula::kBias) {}

  void run() {
    std::int64_t first = groups_.first;
    block_.for_each_selection(first, groups_.end, [&](std::int64_t columns) {
      first_ = first;
      for (ColumnOperand<T>* const operand : {&second_, &scale_, &bias_})
        operand->select(first, columns);
      first += columns;
      reduce();
      formula_.with_kind([&](auto kind) { finish<decltype(kind)::value>(); });
      // At the end, since outputs may share the memory of inputs.
      Formula::template for_each_output<f64x>(
          [&](int operand, f64x Numbers::*number) { report(operand, number); });
    });
  }

 private:
  using Numbers = typename Formula::template Numbers<f64x>;
  using W = typename Formula::W;
  using Vector = typename Formula::Vector;
  static constexpr int kSums = Formula::kSums;
  static constexpr std::int64_t kLanesHere = kLanes<f32x>, kSteps = kSumBlock / kBlockRows;
  static constexpr int kHalves = kColumns / kLanes<f64x>;

  // The vector of columns from c on, in row r of the loaded block.
  struct At {
    const MomentColumns& columns;
    const typename ColumnBlock<T>::Rows& rows;
    std::int64_t r, c;

    DMLOPS_INLINE const T* place() const {
      return reinterpret_cast<const T*>(rows.data + r * rows.pitch) + c;
    }
    DMLOPS_INLINE f32x x() const { return load<f32x>(place()); }
    DMLOPS_INLINE auto wide_x() const { return W::load(place(), 0, kLanesHere); }
    DMLOPS_INLINE f32x second() const { return load<f32x>(columns.second_.row(r, c)); }
    DMLOPS_INLINE auto wide_second() const {
      return W::load(columns.second_.row(r, c), 0, kLanesHere);
    }
    DMLOPS_INLINE f32x scale() const { return load<f32x>(columns.scale_.row(r, c)); }
    DMLOPS_INLINE f32x bias() const { return load<f32x>(columns.bias_.row(r, c)); }
  };

  // Calls visit(h) for each f64x of columns.
  template <class Visit>
  DMLOPS_INLINE void for_each_half(const Visit& visit) const {
    for (std::int64_t h = 0; h * kLanes<f64x> < block_.columns(); ++h) visit(h);
  }

  // Loads a number of each group.
  void load_numbers(int operand, double* numbers) {
    alignas(kVectorBytes) char packed[kColumns * sizeof(T)] = {};
    GroupOffsets<kColumns> places(groups_.kept, operand);
    places.select(first_, block_.columns());
    auto& groups = places.input;
    const char* const data = groups_.data[operand];
    const bool uniform = groups.is_uniform();
    pack<Bits<T>>(packed, 0, block_.columns(), 1,
                  {uniform ? data + groups.runs[0].offset : data, 0, groups.step,
                   uniform ? nullptr : groups.offsets()});
    for_each_vector(block_.columns(), [&](std::int64_t c) {
      store(numbers + c, to_double(load<f32x>(reinterpret_cast<const T*>(packed) + c)));
    });
  }

  // Writes a number of each group.
  void report(int operand, f64x Numbers::*number) {
    char* const data = groups_.data[operand];
    if (data == nullptr) return;
    alignas(kVectorBytes) char packed[kColumns * sizeof(T)];
    for_each_vector(block_.columns(), [&](std::int64_t c) {
      const Numbers* const numbers = numbers_ + c / kLanes<f64x>;
      store(reinterpret_cast<T*>(packed) + c,
            canonical_nan(rounded(Doubles{numbers[0].*number, numbers[1].*number})));
    });
    GroupOffsets<kColumns> places(groups_.kept, operand);
    places.select(first_, block_.columns());
    auto& groups = places.input;
    if (groups.is_uniform() && groups.step == sizeof(T)) {
      copy_run(data + groups.runs[0].offset, packed, block_.columns() * groups.step);
    } else {
      unpack<Bits<T>>(data, 0, groups.offsets(), packed, block_.columns());
    }
  }

  void reduce() {
    alignas(kVectorBytes) double numbers[kFirstGroupOperand + 3][kColumns];
    if constexpr (Formula::kScale == 0) {
      for (int operand = kFirstGroupOperand; operand < kFirstGroupOperand + 3; ++operand)
        load_numbers(operand, numbers[operand]);
    }
    for (std::int64_t h = 0; h < kHalves; ++h) {
      formula_.template begin<f64x>(numbers_[h], [&](int operand) {
        return load<f64x>(numbers[operand] + h * kLanes<f64x>);
      });
    }
    if (!formula_.reduces()) return;
    for (int s = 0; s < Formula::kSweeps; ++s) {
      bool needed = false;
      for_each_half([&](std::int64_t h) { needed = needed || any(needs(s, numbers_[h])); });
      if (!needed) continue;
      if (s == 0) {
        add_up([](std::int64_t) DMLOPS_LAMBDA_INLINE {
          return [](const At& at, Vector* sums)
                     DMLOPS_LAMBDA_INLINE { Formula::add_products(at, sums); };
        });
      } else {
        add_up([this](std::int64_t c) DMLOPS_LAMBDA_INLINE {
          const Numbers* const groups = numbers_ + c / kLanes<f64x>;
          const typename W::Minus minus_center(Doubles{groups[0].center, groups[1].center});
          return [minus_center](const At& at, Vector* sums)
                     DMLOPS_LAMBDA_INLINE { Formula::add_deviations(minus_center, at, sums); };
        });
      }
      for_each_half([&](std::int64_t h) {
        f64x totals[kSums];
#pragma GCC unroll 16
        for (int k = 0; k < kSums; ++k) {
          const Doubles& both = totals_[h / 2][k];
          totals[k] = h % 2 == 0 ? both.lower : both.upper;
        }
        Numbers result = numbers_[h];
        formula_.template end<f64x>(s, result, totals, static_cast<double>(block_.count()));
        numbers_[h] = chosen(needs(s, numbers_[h]), result, numbers_[h]);
      });
    }
  }

  DMLOPS_INLINE static Mask<f64x> needs(int s, const Numbers& groups) {
    return s == 0 ? groups.near_zero : ~groups.near_zero;
  }
  DMLOPS_INLINE static bool any(Mask<f64x> mask) { return any_bit(bit_cast<u32x>(mask), ~0u); }
  DMLOPS_INLINE static Numbers chosen(Mask<f64x> mask, const Numbers& a, const Numbers& b) {
    constexpr std::size_t count = sizeof(Numbers) / sizeof(f64x);
    f64x chosen[count], others[count];
    std::memcpy(chosen, &a, sizeof a);
    std::memcpy(others, &b, sizeof b);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < count; ++i) chosen[i] = mask ? chosen[i] : others[i];
    Numbers numbers;
    std::memcpy(&numbers, chosen, sizeof numbers);
    return numbers;
  }

  typename ColumnBlock<T>::Rows load_block(int s, std::int64_t b) {
    const unsigned int operands = formula_.reads(s);
    if ((operands >> Formula::kSecond & 1u) != 0) second_.load(b);
    if ((operands >> 1 & 1u) != 0) return block_.in_place_or_loaded(b);
    return {};
  }

  // Computes the totals in the order of GroupSum. terms(c) creates the function that adds terms of
  // the vector of columns at c.
  template <class MakeTerms>
  DMLOPS_INLINE void add_up(const MakeTerms& make_terms) {
    const std::int64_t blocks = block_.blocks();
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto x = load_block(0, b);
      const std::int64_t rows = block_.rows(b), step = b % kSteps;
      const bool last = b == blocks - 1;
      for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const auto add_terms = make_terms(c);
        // The sums of a single block are used at once, and stay in L1.
        const std::int64_t v = blocks == 1 ? 0 : c / kLanesHere;
        for (std::int64_t lane = 0; lane < min(rows, kMomentLanes); ++lane) {
          Vector sums[kSums] = {};
          if (step != 0) std::memcpy(&sums, &lanes_[v][lane], sizeof sums);
          for (std::int64_t r = lane; r < rows; r += kMomentLanes) {
            block_.prefetch_next(r, c);
            add_terms(At{*this, x, r, c}, sums);
          }
          std::memcpy(&lanes_[v][lane], &sums, sizeof sums);
        }
        if (step == kSteps - 1 || last) {
          std::int64_t used = min(block_.count() - b / kSteps * kSumBlock, kMomentLanes);
          end_block(v, used, b < kSteps);
          if (b >= kSteps) used = kMomentLanes;
          if (last) fold(block_sums_[v], used, totals_[c / kLanesHere]);
        }
      });
    }
  }

  // Adds the first `used` lanes of the block to those of the previous blocks.
  DMLOPS_INLINE void end_block(std::int64_t v, std::int64_t used, bool first) {
    for (std::int64_t lane = 0; lane < used; ++lane) {
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) {
        const Doubles sum = wide(lanes_[v][lane][s]);
        block_sums_[v][lane][s] = first ? sum : block_sums_[v][lane][s] + sum;
      }
    }
  }
  DMLOPS_INLINE static Doubles wide(f32x v) { return to_double(v); }
  DMLOPS_INLINE static Doubles wide(Doubles v) { return v; }

  // Adds lane j + 16 to lane j, and so on.
  static void fold(Doubles (&lanes)[kMomentLanes][kSums], std::int64_t used,
                   Doubles (&total)[kSums]) {
    for (std::int64_t half = kMomentLanes / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j + half < used; ++j) {
#pragma GCC unroll 16
        for (int s = 0; s < kSums; ++s) lanes[j][s] = lanes[j][s] + lanes[j + half][s];
      }
      used = min(used, half);
    }
    for (int s = 0; s < kSums; ++s) total[s] = lanes[0][s];
  }

  template <bool kPerGroup>
  void finish() {
    using Results = decltype(formula_.template results<kPerGroup>());
    Results results[kColumns / kLanesHere];
    i32x in_pairs[kColumns / kLanesHere];
    scale_.load(0);
    bias_.load(0);
    for_each_vector(block_.columns(), [&](std::int64_t c) {
      const Numbers* const numbers = numbers_ + c / kLanes<f64x>;
      const auto factors = [&](int half) {
        return formula_.template factors<kPerGroup, f64x>(numbers[half], [&](int operand) {
          const T* const place = (operand == Formula::kScale ? scale_ : bias_).row(0, c);
          const Doubles both = to_double(load<f32x>(place));
          return half == 0 ? both.lower : both.upper;
        });
      };
      const auto lower = factors(0), upper = factors(1);
      const std::int64_t v = c / kLanesHere;
      results[v] = formula_.template results<kPerGroup>();
      results[v].template set<f64x>([&](auto member) {
        return Doubles{lower.*member, upper.*member};
      });
      const f64x one = f64x{} + 1.0;
      in_pairs[v] =
          rounded(Doubles{lower.in_pairs ? one : f64x{}, upper.in_pairs ? one : f64x{}}) > 0.0f;
    });
    for (std::int64_t b = 0; b < block_.blocks(); ++b) {
      const auto x = load_block(Formula::kSweeps, b);
      scale_.load(b);
      bias_.load(b);
      // Writes the results of rows [first, first + rows) of the block.
      const auto write = [&](auto* target, std::int64_t pitch, std::int64_t first,
                             std::int64_t rows) DMLOPS_LAMBDA_INLINE {
        for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
          const Results terms = results[c / kLanesHere];
          const i32x paired = in_pairs[c / kLanesHere];
          auto* place = target + c;
          const auto put = [&](const auto& result) DMLOPS_LAMBDA_INLINE {
            for (std::int64_t r = first; r < first + rows; ++r, place += pitch)
              store(place, canonical_nan(result(At{*this, x, r, c})));
          };
          if (!any_bit(bit_cast<u32x>(~paired), ~0u)) {
            put([&](const At& at) DMLOPS_LAMBDA_INLINE { return terms.in_pairs(at); });
          } else if (!any_bit(bit_cast<u32x>(paired), ~0u)) {
            put([&](const At& at) DMLOPS_LAMBDA_INLINE { return terms.wide(at); });
          } else {
            put([&](const At& at)
                    DMLOPS_LAMBDA_INLINE { return paired ? terms.in_pairs(at) : terms.wide(at); });
          }
        });
      };
      if (formula_.activates()) {
        alignas(kVectorBytes) float normalized[kBlockRows * kColumns];
        write(normalized, kColumns, 0, block_.rows(b));
        formula_.activate(normalized, block_.rows(b) * kColumns);
        block_.store_results(
            b, [&](char* target, std::int64_t pitch, const char* source, std::int64_t rows) {
              const float* row = normalized + block_.row_of(source) * kColumns;
              for (std::int64_t r = 0; r < rows; ++r, target += pitch, row += kColumns) {
                for_each_vector(block_.columns(), [&](std::int64_t c) {
                  store(reinterpret_cast<T*>(target) + c, load<f32x>(row + c));
                });
              }
            });
      } else {
        block_.store_results(b, [&](char* target, std::int64_t pitch, const char* source,
                                    std::int64_t rows) DMLOPS_LAMBDA_INLINE {
          write(reinterpret_cast<T*>(target), pitch / ColumnBlock<T>::kSize, block_.row_of(source),
                rows);
        });
      }
    }
  }

  const Reduction& groups_;
  const Formula& formula_;
  const ElementLoops in_, out_;
  ColumnBlock<T> block_;
  ColumnOperand<T> second_, scale_, bias_;
  std::int64_t first_ = 0;
  alignas(kVectorBytes) Numbers numbers_[kHalves];
  static constexpr int kVectors = kColumns / kLanes<f32x>;
  alignas(kVectorBytes) Vector lanes_[kVectors][kMomentLanes][kSums];        // of the block
  alignas(kVectorBytes) Doubles block_sums_[kVectors][kMomentLanes][kSums];  // of all blocks
  alignas(kVectorBytes) Doubles totals_[kVectors][kSums];
};

// Shorter groups are computed down columns, unless there are few groups.
constexpr std::int64_t kMomentsAlongRows = 64;

// True if the groups are computed along rows.
DMLOPS_INLINE bool fills_moment_rows(const Reduction& groups) {
  const ElementLoops in = element_loops(groups, 1);
  const std::int64_t count = groups.end - groups.first;
  if (groups.stage != Reduction::kAllStages || (count <= 8 && 8 * count <= in.count())) return true;
  if (in.count() < kMomentsAlongRows) return false;
  // Groups that are nearer than the elements of a group share cache lines.
  const auto nearer = [&](int operand) {
    const std::int64_t step = groups.kept.rank == 0 ? 0 : abs(groups.kept.strides[operand][0]);
    return step != 0 && step < min(kLineBytes, abs(element_loops(groups, operand).step()));
  };
  return !nearer(1) && !(nearer(0) && in.run() < kGroupStep && count >= kGroupStep);
}

template <class T, class Formula>
void reduce_moments(const Reduction& reduction, Formula& formula) {
  if (fills_moment_rows(reduction)) {
    reduce_groups<T>(reduction, formula);
  } else {
    MomentColumns<T, Formula>(reduction, formula).run();
  }
}

}  // namespace dmlops::DMLOPS_TARGET
