// Rules and error messages that the operators share.
#include "operators/check.hpp"

#include <algorithm>
#include <cfenv>
#include <cstdio>
#include <cstdlib>

#include "core/attributes.hpp"
#include "core/text.hpp"
#include "core/views.hpp"
#include "kernels/kernel.hpp"
#include "operators/overlap.hpp"
#include "operators/scalars.hpp"

namespace dmlops {
namespace {

bool has_python_names = false;

// Returns an axis of the size of a vector: the last one of the set `preferred` if it fits,
// otherwise that of DirectML's channels, otherwise the first that fits; -1 if none does.
int axis_of_vector(std::int64_t length, const ConstTensorView& input, unsigned int preferred) {
  const auto fits = [&](int axis) {
    return axis < input.rank && input.sizes[static_cast<std::size_t>(axis)] == length;
  };
  int last = kMaxRank - 1;
  while (last > 0 && !has_bit(preferred, last)) --last;
  if (has_bit(preferred, last) && fits(last)) return last;
  if (fits(1)) return 1;
  for (int axis = 0; axis < input.rank; ++axis) {
    if (fits(axis)) return axis;
  }
  return -1;
}

// Returns the shape with which a parameter of another rank can be broadcast: one value, a vector
// along an axis, or sizes that match the input's last ones, as NumPy aligns them.
std::string reshape_advice(const char* argument, const ConstTensorView& parameter,
                           const ConstTensorView& input, unsigned int preferred,
                           bool has_common_shape) {
  ConstTensorView shape = input;
  std::fill_n(shape.sizes.begin(), shape.rank, 1);
  const auto use = [&](const std::string& purpose) {
    return concat("; ", purpose, ", use ", argument, ".reshape", shape_text(shape));
  };
  const auto* const sizes = parameter.sizes.data();
  const bool is_one = std::all_of(sizes, sizes + parameter.rank, [](auto n) { return n == 1; });
  if (is_one && has_common_shape) return "";
  if (is_one && input.rank > 0) return use("for one value");
  if (parameter.rank == 1) {
    const int axis = axis_of_vector(sizes[0], input, preferred);
    if (axis < 0) return "";
    shape.sizes[static_cast<std::size_t>(axis)] = sizes[0];
    return use(concat("for one value per index of axis ", axis));
  }
  if (parameter.rank > input.rank) return "";
  const auto first = static_cast<std::size_t>(input.rank - parameter.rank);
  for (std::size_t d = first; d < rank_of(input); ++d) {
    shape.sizes[d] = sizes[d - first];
    if (shape.sizes[d] != 1 && shape.sizes[d] != input.sizes[d]) return "";
  }
  return use("to align the last axes");
}

void require_same_type(const char* op, const char* argument, const ConstTensorView& view,
                       const ConstTensorView& input) {
  if (view.type == input.type) return;
  throw TypeError(concat(op, ": ", argument, " has dtype ", name(view.type),
                         ", but input has dtype ", name(input.type), "; they must be the same"));
}

}  // namespace

const char* OutputName::text() const { return has_python_names ? python : cpp; }

void use_python_names() { has_python_names = true; }

std::string number_text(double value) {
  // musl and Windows convert in x87 registers, whose flags FloatEnvironment does not restore.
  std::fenv_t caller;
  std::feholdexcept(&caller);
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  std::fesetenv(&caller);
  return text;
}

std::string shape_text(const ConstTensorView& view) {
  const std::string sizes = joined(rank_of(view), [&](std::size_t d) { return view.sizes[d]; });
  return concat("(", sizes, view.rank == 1 ? ",)" : ")");
}

void require_addressable(const char* op, const char* argument, const ConstTensorView& view) {
  constexpr std::int64_t limit = std::int64_t{1} << 56;  // exceeds the address space of a process
  const auto refuse = [&](const std::string& what) {
    throw Error(concat(op, ": ", argument, " ", what));
  };
  if (view.rank < 0 || view.rank > kMaxRank) {
    refuse(concat("has rank ", view.rank, "; at most ", kMaxRank, " dimensions are supported"));
  }
  bool empty = false;
  for (std::size_t d = 0; d < rank_of(view); ++d) {
    if (view.sizes[d] < 0) refuse(concat("has shape ", shape_text(view), " with a negative size"));
    empty = empty || view.sizes[d] == 0;
  }
  if (empty) return;
  std::int64_t extent = element_bytes(view.type);
  for (std::size_t d = 0; d < rank_of(view); ++d) {
    std::int64_t reach = 0;
    if (view.sizes[d] == 1) continue;
    const bool wraps = __builtin_mul_overflow(view.sizes[d] - 1, view.strides[d], &reach);
    if (wraps || reach > limit || reach < -limit || (extent += std::llabs(reach)) > limit) {
      refuse(concat("has shape ", shape_text(view),
                    " and strides that reach over more than 2^56 bytes"));
    }
  }
}

void require_data(const char* op, const char* argument, const ConstTensorView& view) {
  if (view.data != nullptr || is_empty(view)) return;
  throw Error(concat(op, ": ", argument, " has shape ", shape_text(view),
                     ", but its data pointer is null"));
}

void require_input(const char* op, const ConstTensorView& input) {
  require_addressable(op, "input", input);
  require_data(op, "input", input);
}

DMLOPS_COLD void refuse_type(const char* op, DataType type, const AcceptedTypes& accepted) {
  throw TypeError(concat(op, ": input has dtype ", name(type), "; it takes ", accepted.text));
}

void require_whole(const char* op, const char* argument, const Scalar& bound) {
  if (is_whole(bound)) return;
  throw Error(concat(op, ": ", argument, "=", number_text(bound.floating),
                     " is not a whole number, but the tensor's elements are integers"));
}

void require_like(const char* op, const char* argument, const ConstTensorView& view,
                  const ConstTensorView& like, const char* other) {
  require_same_type(op, argument, view, like);
  require_addressable(op, argument, view);
  require_data(op, argument, view);
  const auto* const end = like.sizes.begin() + like.rank;
  const auto* const differs = std::mismatch(like.sizes.begin(), end, view.sizes.begin()).first;
  if (view.rank == like.rank && differs == end) return;
  throw Error(concat(op, ": ", argument, " has shape ", shape_text(view), ", but ", other,
                     " has shape ", shape_text(like),
                     view.rank == like.rank
                         ? concat("; they differ on axis ", differs - like.sizes.begin())
                         : ""));
}

void require_output(const char* op, const OutputName& argument, const ConstTensorView& output,
                    const ConstTensorView& like, const char* other) {
  require_like(op, argument.text(), output, like, other);
  if (!is_empty(output) && overlaps_itself(output)) {
    throw Error(concat(op, ": ", argument.text(), " has elements that overlap one another (shape ",
                       shape_text(output), ")"));
  }
}

void require_output(const char* op, const ConstTensorView& output, const ConstTensorView& input) {
  require_output(op, kOutput, output, input, "input");
}

void require_broadcastable(const char* op, const char* argument, const ConstTensorView& parameter,
                           const ConstTensorView& input, unsigned int vector_axes,
                           bool has_common_shape) {
  require_same_type(op, argument, parameter, input);
  require_addressable(op, argument, parameter);
  require_data(op, argument, parameter);
  const auto both_shapes = [&] {
    return concat(op, ": ", argument, " has shape ", shape_text(parameter),
                  ", but input has shape ", shape_text(input));
  };
  if (parameter.rank != input.rank) {
    throw Error(concat(both_shapes(), "; ", argument, " must have ",
                       counted(input.rank, "dimension"), ", each of size 1 or the input's",
                       reshape_advice(argument, parameter, input, vector_axes, has_common_shape)));
  }
  for (std::size_t d = 0; d < rank_of(input); ++d) {
    if (parameter.sizes[d] == 1 || parameter.sizes[d] == input.sizes[d]) continue;
    throw Error(concat(both_shapes(), "; on axis ", d, " its size must be 1",
                       input.sizes[d] == 1 ? "" : concat(" or ", input.sizes[d]), ", not ",
                       parameter.sizes[d]));
  }
}

unsigned int reduced_axes(const char* op, const ConstTensorView& input, const std::int64_t* axes,
                          std::size_t axis_count) {
  if (axes == nullptr && axis_count > 0) throw Error(concat(op, ": axes is a null pointer"));
  const int rank = std::max(input.rank, 1);
  unsigned int reduced = 0;
  for (std::size_t i = 0; i < axis_count; ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) {
      throw Error(concat(op, ": axis ", axes[i], " is out of range for input with ",
                         counted(input.rank, "dimension"), ", shape ", shape_text(input)));
    }
    if (has_bit(reduced, static_cast<std::size_t>(axis))) {
      throw Error(concat(op, ": axes names axis ", axis, " twice"));
    }
    reduced |= 1u << axis;
  }
  return reduced;
}

void require_disjoint(const char* op,
                      std::initializer_list<std::pair<OutputName, ConstTensorView>> outputs) {
  for (auto a = outputs.begin(); a != outputs.end(); ++a) {
    for (auto b = a + 1; b != outputs.end(); ++b) {
      if (is_empty(a->second) || is_empty(b->second) || !overlap(a->second, b->second)) continue;
      throw Error(concat(op, ": ", a->first.text(), " and ", b->first.text(),
                         " overlap; each output needs memory of its own"));
    }
  }
}

bool is_empty(const ConstTensorView& view) {
  return std::any_of(view.sizes.begin(), view.sizes.begin() + view.rank,
                     [](std::int64_t size) { return size == 0; });
}

namespace detail {

void require_within(int rank, const Dimensions& sizes, const Dimensions& strides,
                    std::size_t element, std::size_t count) {
  const ConstTensorView view(nullptr, DataType::unknown, rank, sizes, strides);
  require_addressable("TensorView", "the tensor", view);
  if (is_empty(view)) return;
  std::int64_t first = 0, end = static_cast<std::int64_t>(element);  // bytes
  for (std::size_t d = 0; d < rank_of(view); ++d) {
    const std::int64_t reach = (sizes[d] - 1) * strides[d];
    (reach < 0 ? first : end) += reach;
  }
  const std::uint64_t bytes = std::uint64_t{count} * element;
  if (first >= 0 && static_cast<std::uint64_t>(end) <= bytes) return;
  throw Error(concat("TensorView: a tensor of shape ", shape_text(view),
                     " with its strides spans bytes ", first, " to ", end,
                     ", but the container has ", counted(bytes, "byte")));
}

}  // namespace detail
}  // namespace dmlops
