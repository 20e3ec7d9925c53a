// Functions for dask arrays: reductions of groups in chunks.
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "core/float_environment.hpp"
#include "core/isa.hpp"
#include "core/stack.hpp"
#include "core/text.hpp"
#include "descriptors.hpp"
#include "descriptors/compile.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "operators/plan.hpp"

namespace py = pybind11;

namespace dmlops::python {
namespace {

template <class T>
using Dense = py::array_t<T, py::array::c_style>;

DataType float_type(const py::array& x) {
  return x.itemsize() == sizeof(float) ? DataType::float32 : DataType::float16;
}

bool is_float(const py::array& x) {
  const py::dtype type = x.dtype();
  return type.kind() == 'f' && type.byteorder() == '=' && (x.itemsize() == 4 || x.itemsize() == 2);
}

// x[groups][length], float32 or float16.
GroupChunks chunks_of(const py::array& x, const Dense<float>& max) {
  const bool is_dense = (x.flags() & py::array::c_style) != 0;
  if (!is_float(x) || !is_dense || x.ndim() != 2 || max.ndim() != 1 || max.shape(0) != x.shape(0))
    throw py::value_error("a chunk is a dense table of float32 or float16, one maximum per row");
  return {x.shape(0), x.shape(1), x.data(), max.data()};
}

// log_softmax and softmax: the kernels, and the number of sums.
struct SoftmaxChunks {
  GroupSumsKernel (KernelTable::*sums)[kFloatTypes];
  GroupFinishKernel (KernelTable::*finish)[kFloatTypes];
  std::int64_t sum_count;
};

SoftmaxChunks softmax_chunks(const std::string& op) {
  if (op == "softmax") return {&KernelTable::softmax_sums, &KernelTable::softmax_finish, 1};
  return {&KernelTable::log_softmax_sums, &KernelTable::log_softmax_finish, 2};
}

template <class Call>
void run_chunks(const Call& call) {
  require_stack(kSoftmaxStack);
  const GilReleased released;
  const FloatEnvironment environment;
  call();
}

// (lanes[groups][blocks][kSumLanes][sums], maxima[groups])
py::tuple softmax_sums(const std::string& op, const py::array& x, const Dense<float>& max) {
  const GroupChunks chunks = chunks_of(x, max);
  const SoftmaxChunks of_operator = softmax_chunks(op);
  const std::int64_t blocks = sum_blocks(chunks.length);
  Dense<double> lanes({chunks.count, blocks, std::int64_t{kSumLanes}, of_operator.sum_count});
  Dense<double> maxima(chunks.count);
  const auto kernel = (kernels().*of_operator.sums)[float_index(float_type(x))];
  double* const lanes_data = lanes.mutable_data();
  double* const maxima_data = maxima.mutable_data();
  run_chunks([&] { kernel(chunks, lanes_data, maxima_data); });
  return py::make_tuple(lanes, maxima);
}

// Returns the results for sums[groups][sums] and the numbers of maxima.
py::array softmax_finish(const std::string& op, const py::array& x, const Dense<float>& max,
                         const Dense<double>& sums, const Dense<double>& maxima) {
  const GroupChunks chunks = chunks_of(x, max);
  const SoftmaxChunks of_operator = softmax_chunks(op);
  const bool fits =
      sums.ndim() == 2 && sums.shape(0) == chunks.count && sums.shape(1) == of_operator.sum_count;
  if (!fits || maxima.ndim() != 1 || maxima.shape(0) != chunks.count)
    throw py::value_error("a chunk has sums, and one number of maxima, per row");
  py::array result(x.dtype(), std::vector<py::ssize_t>{chunks.count, chunks.length});
  if (chunks.length == 0) return result;
  const auto kernel = (kernels().*of_operator.finish)[float_index(float_type(x))];
  void* const output = result.mutable_data();
  const double* const sums_data = sums.data();
  const double* const maxima_data = maxima.data();
  run_chunks([&] { kernel(chunks, sums_data, maxima_data, output); });
  return result;
}

// A view of an array as an operand with the leading dimensions of another one.
ConstTensorView operand(const py::array& array, DataType type, int rank) {
  ConstTensorView view;
  view.data = array.data();
  view.type = type;
  view.rank = rank;
  for (int d = 0; d < rank; ++d) {
    view.sizes[static_cast<std::size_t>(d)] = array.shape(d);
    view.strides[static_cast<std::size_t>(d)] = array.strides(d);
  }
  return view;
}

// Runs a stage of a normalization or of gradients. `tensors` have the names of the descriptor's
// fields; `sums` are those of each sweep, in order. Writes the outputs or the last sums. `flags`:
// use_mean, use_variance and per_group.
void run_stage(std::uint32_t operator_type, int stage, std::int64_t group_elements,
               const std::map<std::string, py::array>& tensors, const std::vector<py::array>& sums,
               unsigned int reduced, float epsilon, const std::vector<bool>& flags,
               const py::object& fused_activation) {
  const OperatorInfo& op = known_operator(static_cast<OperatorType>(operator_type));
  if (tensors.count("input_tensor") == 0 || kGroupSums + sums.size() > kReductionOperands ||
      flags.size() != 3) {
    throw py::value_error("a stage has an input, at most 2 sums, and 3 flags");
  }
  const py::array& x = tensors.at("input_tensor");
  if (!is_float(x) || x.ndim() > kMaxRank) {
    throw py::value_error(
        concat("the input of a stage is float32 or float16, of at most ", kMaxRank, " dimensions"));
  }
  const DataType type = float_type(x);
  ConstTensorView views[kReductionOperands];
  ReductionOperands given = {};
  const auto set = [&](std::size_t k, const py::array& array) {
    const bool is_sum = k >= kGroupSums;
    bool fits = array.ndim() >= x.ndim() && (is_sum ? py::isinstance<py::array_t<double>>(array)
                                                    : array.dtype().equal(x.dtype()));
    for (int d = 0; fits && d < x.ndim(); ++d) {
      fits = array.shape(d) == x.shape(d) || array.shape(d) == 1;
    }
    if (!fits) throw py::value_error("an operand of a stage does not fit its input");
    views[k] = operand(array, type, static_cast<int>(x.ndim()));
    given[k] = &views[k];
  };
  for (int i = 0; i < op.tensor_count(); ++i) {
    const auto found = tensors.find(tensor_name(op, i));
    if (found != tensors.end()) set(static_cast<std::size_t>(operand_of(op, i)), found->second);
  }
  for (std::size_t k = 0; k < sums.size(); ++k) set(kGroupSums + k, sums[k]);
  OperatorPlan plan;
  if (op.has(FieldKind::activation)) {
    MeanVarianceNormalizationOptions options;
    options.epsilon = epsilon;
    options.use_mean = flags[0];
    options.use_variance = flags[1];
    if (!read_fused_activation(op.name, fused_activation.ptr(), options.fused_activation))
      throw py::error_already_set();
    plan = plan_mean_variance_normalization(given, reduced, options);
    auto& own = std::get<ReductionParameters>(plan.parameters).own;
    std::get<StatisticsParameters>(own).per_group = flags[2];
  } else {
    plan = plan_batch_normalization_grad(
        given, op.family == Family::batch_normalization_training_grad, epsilon);
  }
  PlannedReduction& reduction = std::get<ReductionParameters>(plan.parameters).reduction;
  reduction.stage = stage;
  reduction.group_elements = group_elements;
  run_chunks([&plan] { plan.run(); });
}

}  // namespace

void add_dask_functions(py::module_& module) {
  module.attr("SUM_BLOCK") = kSumBlock;
  module.attr("SUM_LANES") = kSumLanes;        // of softmax_sums()
  module.attr("MOMENT_LANES") = kMomentLanes;  // of run_stage()
  module.def("softmax_sums", &softmax_sums, py::arg("name"), py::arg("x"), py::arg("max"));
  module.def("softmax_finish", &softmax_finish, py::arg("name"), py::arg("x"), py::arg("max"),
             py::arg("sums"), py::arg("maxima"));
  module.def("run_stage", &run_stage, py::arg("operator_type"), py::arg("stage"),
             py::arg("group_elements"), py::arg("tensors"), py::arg("sums"), py::arg("reduced"),
             py::arg("epsilon"), py::arg("flags"), py::arg("fused_activation"));
}

}  // namespace dmlops::python
