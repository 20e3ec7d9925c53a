// The Python type CompiledOperator, written with the C API, since pybind11's calls would cost more
// than a small dispatch.
// clang-format off
#include <pybind11/pybind11.h>  // before structmember.h, which needs Python.h
#include <structmember.h>
// clang-format on

#include "arguments.hpp"
#include "bindings.hpp"
#include "descriptors.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace dmlops::python {
namespace {

struct Object {
  PyObject_HEAD CompiledOperator* compiled;
  PyObject* desc;
  PyObject* feature_level;
  PyObject* weak_references;
};

PyTypeObject* compiled_operator_type = nullptr;
Signature dispatch_signature;  // set at import

void deallocate(PyObject* self) {
  auto* const object = reinterpret_cast<Object*>(self);
  PyTypeObject* const type = Py_TYPE(self);
  if (object->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  delete object->compiled;
  Py_XDECREF(object->desc);
  Py_XDECREF(object->feature_level);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<CompiledOperator %R>", reinterpret_cast<Object*>(self)->desc);
}

PyObject* dispatch(PyObject* self, PyObject* const* arguments, Py_ssize_t positional,
                   PyObject* keyword_names) {
  PyObject* values[2] = {};
  const CompiledOperator& compiled = *reinterpret_cast<Object*>(self)->compiled;
  const CompiledOperator::Implementation& implementation = compiled.implementation();
  const int inputs_needed = implementation.op->inputs;
  try {
    if (!match(dispatch_signature, arguments, positional, keyword_names, values)) return nullptr;
    Bindings inputs(*implementation.op, implementation.tensors.data(), 0, inputs_needed);
    Bindings outputs(*implementation.op, implementation.tensors.data(), inputs_needed,
                     implementation.op->outputs);
    if (!inputs.read("inputs", values[0]) || !outputs.read("outputs", values[1])) return nullptr;
    Binding written[OperatorDesc::kMaxTensors];
    for (int i = 0; i < implementation.op->outputs; ++i) {
      const ConstBinding& out = outputs.data()[i];  // checked to be writable
      written[i] = {const_cast<void*>(out.buffer), out.offset, out.size_in_bytes, out.is_array};
    }
    {
      const GilReleased released(implementation.elements);
      compiled.dispatch(inputs.data(), inputs.given(), written, outputs.given());
    }
    if (!outputs.count_writes()) return nullptr;
  } catch (...) {
    return set_descriptor_error();  // holds the GIL again
  }
  Py_RETURN_NONE;
}

// Pickles the descriptor and feature level, and OWNED_BY_DML inputs as bytes.
PyObject* reduce(PyObject* self, PyObject*) {
  const auto& object = *reinterpret_cast<Object*>(self);
  const CompiledOperator::Implementation& implementation = object.compiled->implementation();
  try {
    py::list initial;
    for (int i = 0; i < implementation.op->inputs; ++i) {
      const Slot& slot = implementation.slots[i];
      if (slot.owned) {
        initial.append(py::bytes(slot.content.data(), slot.content.size()));
      } else {
        initial.append(py::none());
      }
    }
    const py::object recompile = py::module_::import("dmlops._device").attr("recompile");
    return py::make_tuple(recompile, py::make_tuple(py::handle(object.desc),
                                                    py::handle(object.feature_level), initial))
        .release()
        .ptr();
  } catch (...) {
    return set_descriptor_error();
  }
}

py::object compile(const py::object& desc, const py::object& feature_level,
                   const py::object& initial) {
  const OperatorDesc read = read_desc("compile: desc", desc);
  const Device device(static_cast<FeatureLevel>(feature_level.cast<std::uint32_t>()));
  validate(read, device.feature_level());
  const OperatorInfo& op = *find_operator(read.type);
  std::vector<BufferTensorDesc> tensors;
  tensors.reserve(static_cast<std::size_t>(op.tensor_count()));
  for (int i = 0; i < op.tensor_count(); ++i) {
    tensors.push_back(read.tensors[static_cast<std::size_t>(i)].value_or(BufferTensorDesc()));
  }
  Bindings bindings(op, tensors.data(), 0, op.inputs);
  if (!initial.is_none() && !bindings.read("initial", initial.ptr())) throw_python_error();
  require_initial_count(op, bindings.given());
  const ConstBinding* const first = bindings.data();
  auto compiled = std::make_unique<CompiledOperator>(
      device.compile(read, std::vector<ConstBinding>(first, first + bindings.given())));

  auto result = py::reinterpret_steal<py::object>(
      compiled_operator_type->tp_alloc(compiled_operator_type, 0));
  if (!result) throw_python_error();
  auto* const object = reinterpret_cast<Object*>(result.ptr());
  object->compiled = compiled.release();
  object->desc = desc.inc_ref().ptr();
  object->feature_level = feature_level.inc_ref().ptr();
  return result;
}

constexpr const char* kDoc = R"(An operator that is ready to run, returned by `Device.compile`.

Immutable: many threads may dispatch one operator at once. Unpickling compiles the descriptor again.

Attributes
----------
desc
    The compiled descriptor.
feature_level : FeatureLevel
    The feature level of the device.

Examples
--------
>>> import numpy as np
>>> from dmlops import ActivationReluOperatorDesc, BufferTensorDesc, Device
>>> x = np.array([-1, 2], np.float32)
>>> tensor = BufferTensorDesc.from_array(x)
>>> relu = Device().compile(ActivationReluOperatorDesc(input_tensor=tensor, output_tensor=tensor))
>>> relu.dispatch(inputs=[x], outputs=[x])
>>> x
array([0., 2.], dtype=float32)
)";

constexpr const char* kDispatchDoc = R"(dispatch($self, inputs, outputs)
--

Run the operator on bound memory.

Parameters
----------
inputs, outputs : list, tuple or dict
    A binding for each tensor of the descriptor, in the order of the fields or by name: a
    `numpy.ndarray`, an object that offers the buffer protocol or DLPack on the CPU, or a
    `BufferBinding`. None stands for an input that is OWNED_BY_DML, and for a tensor that the
    descriptor lacks.

    As in DirectML, bindings are ranges of bytes. An array must have the tensor's data type or be
    bytes. It must be contiguous, or have the tensor's strides. An array of several dimensions must
    have the tensor's sizes; bytes and 1-D arrays are buffers.

Raises
------
BindingError
    If memory is too small, misaligned, read-only as an output, or shared with an output, unless the
    operator works in place and all bytes are shared. No output has been written.
TypeError
    If an object cannot be bound.

Notes
-----
Bytes between and after the elements of an output are never written.

Examples
--------
>>> from dmlops import ActivationReluOperatorDesc, BufferTensorDesc, Device, TensorDataType
>>> tensor = BufferTensorDesc(TensorDataType.INT8, (4,))
>>> relu = Device().compile(ActivationReluOperatorDesc(input_tensor=tensor, output_tensor=tensor))
>>> result = bytearray(4)
>>> relu.dispatch(inputs={"input_tensor": bytes([1, 255, 2, 254])}, outputs=[result])
>>> list(result)
[1, 0, 2, 0]
)";

PyMethodDef methods[] = {
    {"dispatch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dispatch)),
     METH_FASTCALL | METH_KEYWORDS, kDispatchDoc},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {},
};

PyMemberDef members[] = {
    {"desc", T_OBJECT_EX, offsetof(Object, desc), READONLY, nullptr},
    {"feature_level", T_OBJECT_EX, offsetof(Object, feature_level), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Object, weak_references), READONLY, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {},
};

PyType_Spec spec = {"dmlops.CompiledOperator", sizeof(Object), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void add_compiled_operator(py::module_& module) {
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) throw_python_error();
  compiled_operator_type = reinterpret_cast<PyTypeObject*>(type);
  dispatch_signature = {"dispatch", 2, 2, {"inputs", "outputs"}};
  module.attr("CompiledOperator") = py::handle(type);
  module.def("compile", &compile);
}

}  // namespace dmlops::python
