// Functions for dask arrays: log_softmax in chunks.
#include "dask.hpp"

#include <pybind11/numpy.h>

#include "core/float_environment.hpp"
#include "core/isa.hpp"

namespace py = pybind11;

namespace dmlops::python {
namespace {

template <class T>
using Dense = py::array_t<T, py::array::c_style>;

std::size_t type_index(const py::array& x) { return x.itemsize() == sizeof(float) ? 0 : 1; }

// x[groups][length], float32 or float16.
GroupChunks chunks_of(const py::array& x, const Dense<float>& max) {
  const bool is_float = x.dtype().kind() == 'f' && (x.itemsize() == 4 || x.itemsize() == 2);
  const bool is_dense = (x.flags() & py::array::c_style) != 0;
  if (!is_float || !is_dense || x.ndim() != 2 || max.ndim() != 1 || max.shape(0) != x.shape(0))
    throw py::value_error("a chunk is a dense table of float32 or float16, one maximum per row");
  return {x.shape(0), x.shape(1), x.data(), max.data()};
}

// (lanes[groups][blocks][kSumLanes][2], maxima[groups])
py::tuple log_softmax_sums(const py::array& x, const Dense<float>& max) {
  const GroupChunks chunks = chunks_of(x, max);
  const std::int64_t blocks = (chunks.length + kSumBlock - 1) / kSumBlock;
  Dense<double> lanes({chunks.count, blocks, std::int64_t{kSumLanes}, std::int64_t{2}});
  Dense<double> maxima(chunks.count);
  const auto kernel = kernels().log_softmax_sums[type_index(x)];
  double* const lanes_data = lanes.mutable_data();
  double* const maxima_data = maxima.mutable_data();
  {
    const py::gil_scoped_release released;
    const FloatEnvironment environment;
    kernel(chunks, lanes_data, maxima_data);
  }
  return py::make_tuple(lanes, maxima);
}

// Returns the results for sums[groups][2], excluding and including the maxima, and the numbers of
// maxima.
py::array log_softmax_finish(const py::array& x, const Dense<float>& max, const Dense<double>& sums,
                             const Dense<double>& maxima) {
  const GroupChunks chunks = chunks_of(x, max);
  const bool is_pair = sums.ndim() == 2 && sums.shape(0) == chunks.count && sums.shape(1) == 2;
  if (!is_pair || maxima.ndim() != 1 || maxima.shape(0) != chunks.count)
    throw py::value_error("a chunk has two sums, and one number of maxima, per row");
  py::array result(x.dtype(), std::vector<py::ssize_t>{chunks.count, chunks.length});
  if (chunks.length == 0) return result;
  const auto kernel = kernels().log_softmax_finish[type_index(x)];
  void* const output = result.mutable_data();
  const double* const sums_data = sums.data();
  const double* const maxima_data = maxima.data();
  {
    const py::gil_scoped_release released;
    const FloatEnvironment environment;
    kernel(chunks, sums_data, maxima_data, output);
  }
  return result;
}

}  // namespace

void add_dask_functions(py::module_& module) {
  module.attr("LOG_SOFTMAX_BLOCK") = kSumBlock;
  module.def("log_softmax_sums", &log_softmax_sums, py::arg("x"), py::arg("max"));
  module.def("log_softmax_finish", &log_softmax_finish, py::arg("x"), py::arg("max"),
             py::arg("sums"), py::arg("maxima"));
}

}  // namespace dmlops::python
