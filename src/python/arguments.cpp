// Parses vectorcall arguments by position and name, without allocating a dictionary or a tuple.
#include "arguments.hpp"

#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "core/attributes.hpp"
#include "core/float16.hpp"
#include "core/float_environment.hpp"
#include "core/text.hpp"
#include "errors.hpp"
#include "numbers.hpp"
#include "reference.hpp"

namespace dmlops::python {
namespace {

DMLOPS_COLD bool refuse_twice(const Signature& signature, PyObject* name) {
  PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", signature.function,
               name);
  return false;
}

DMLOPS_COLD bool refuse_number(const Signature& signature, Py_ssize_t positional) {
  std::string fix;
  for (int i = signature.positional; i < signature.count; ++i) {
    const bool is_first = i == signature.positional, is_last = i == signature.count - 1;
    fix += concat(is_first ? "; pass " : is_last ? " and " : ", ", signature.names[i], "=");
  }
  if (!fix.empty()) fix += " by name";
  PyErr_Format(PyExc_TypeError, "%s() takes %s%s (%zd given)%s", signature.function,
               signature.required < signature.positional ? "at most " : "",
               counted(signature.positional, "positional argument").c_str(), positional,
               fix.c_str());
  return false;
}

DMLOPS_COLD bool refuse_without(const Signature& signature, int i) {
  PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", signature.function,
               signature.names[i]);
  return false;
}

DMLOPS_COLD int find_letters(const Signature& signature, PyObject* name) {
  int i = signature.count - 1;
  while (i >= 0 && PyUnicode_CompareWithASCIIString(name, signature.names[i]) != 0) --i;
  return i;
}

// Keywords of other libraries, for hints in messages. `of` is a part of the function's name.
constexpr struct {
  const char *theirs, *ours, *of = "";
} kSynonyms[] = {{"axis", "axes"},
                 {"dim", "axes"},
                 {"normalized_shape", "axes"},
                 {"a_min", "min"},
                 {"a_max", "max"},
                 {"min_val", "min"},
                 {"max_val", "max"},
                 {"minValue", "min"},
                 {"maxValue", "max"},
                 {"lower", "min"},
                 {"upper", "max"},
                 {"eps", "epsilon"},
                 {"var", "variance"},
                 {"running_mean", "mean"},
                 {"running_var", "variance"},
                 {"weight", "scale"},
                 {"gamma", "scale"},
                 {"beta", "bias", "normalization"},
                 {"weight", "slope"},
                 {"alpha", "slope"},
                 {"negative_slope", "alpha"},
                 {"threshold", "alpha", "thresholded_relu"},
                 {"scale", "gamma"},
                 {"lambd", "threshold"},
                 {"beta", "steepness"},
                 {"alpha", "sigmoid_input_scale"},
                 {"beta", "sigmoid_input_scale"},
                 {"grad", "input_gradient"},
                 {"grad_output", "input_gradient"},
                 {"x", "input"}};

// Returns the advice for a keyword that the function lacks.
DMLOPS_COLD std::string advice_for(const Signature& signature, PyObject* name) {
  for (const auto& [theirs, ours, of] : kSynonyms) {
    if (PyUnicode_CompareWithASCIIString(name, theirs) != 0) continue;
    if (std::strstr(signature.function, of) == nullptr) continue;
    for (int i = 0; i < signature.count; ++i) {
      if (std::strcmp(signature.names[i], ours) == 0) return concat("use ", ours, "=");
    }
  }
  if (std::strcmp(signature.function, "batch_normalization") == 0 &&
      PyUnicode_CompareWithASCIIString(name, "training") == 0) {
    return "for training, use batch_normalization_training";
  }
  std::string names;
  for (int i = 0; i < signature.count; ++i) {
    names += concat(i == 0 ? "it takes " : ", ", signature.names[i]);
  }
  return names;
}

DMLOPS_COLD bool refuse_keyword(const Signature& signature, PyObject* name) {
  PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'; %s",
               signature.function, name, advice_for(signature, name).c_str());
  return false;
}

int find_parameter(const Signature& signature, PyObject* name) {
  for (int i = signature.count; i-- > 0;) {  // `out` is the last parameter
    if (signature.interned[i] == name) return i;
  }
  return find_letters(signature, name);
}

bool refuse_wrong_type(const char* function, const char* argument, PyObject* value,
                       const char* expected, const char* fix = "") {
  PyErr_Format(PyExc_TypeError, "%s: %s must be %s, not %s%s", function, argument, expected,
               Py_TYPE(value)->tp_name, fix);
  return false;
}

// True for sequences and arrays. PyTorch's tensors are not sequences, only mappings.
DMLOPS_COLD bool has_elements(PyObject* value) {
  return PySequence_Check(value) != 0 || (PyMapping_Check(value) != 0 && !PyDict_Check(value));
}

// Sets the error for a bound that is no number: an array or a list is one of NumPy's clip.
DMLOPS_COLD bool refuse_bound(const char* function, const char* argument, PyObject* value) {
  const bool is_array = has_elements(value) && !PyUnicode_Check(value) && !PyBytes_Check(value);
  const bool is_clip = std::strcmp(function, "clip") == 0;
  return refuse_wrong_type(
      function, argument, value, "a number or None",
      is_array && is_clip ? "; for bounds that differ by element, use numpy.clip" : "");
}

// Reads an integer of any size. One beyond 64 bits becomes a double, since bounds of integer
// tensors saturate.
bool read_integer(PyObject* value, Scalar& result) {
  int overflow = 0;
  const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    result = Scalar(static_cast<std::int64_t>(integer));
    return integer != -1 || PyErr_Occurred() == nullptr;
  }
  if (overflow > 0) {
    const unsigned long long natural = PyLong_AsUnsignedLongLong(value);
    result = Scalar(static_cast<std::uint64_t>(natural));
    if (PyErr_Occurred() == nullptr) return true;
    PyErr_Clear();
  }
  double wide = 0;
  if (!to_double(value, wide)) return false;
  result = Scalar(wide);
  return true;
}

// Reads a whole Fraction, Decimal or long double with more digits than a double.
DMLOPS_COLD bool read_whole(PyObject* value, Scalar& result) {
  const Reference whole(PyNumber_Long(value));
  const int equal = whole ? PyObject_RichCompareBool(value, whole.get(), Py_EQ) : -1;
  const bool done =
      equal < 0 ? value_is_at_fault() : equal == 0 || read_integer(whole.get(), result);
  if (done) PyErr_Clear();
  return done;
}

}  // namespace

Signature::Signature(const char* function_, int positional_, int required_,
                     const std::vector<const char*>& names_)
    : function(function_),
      positional(positional_),
      required(required_),
      count(static_cast<int>(names_.size())) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    names[i] = names_[i];
    interned[i] = PyUnicode_InternFromString(names_[i]);
    if (interned[i] == nullptr)
      PyErr_Clear();  // out of memory: names are compared by characters instead
  }
}

bool match(const Signature& signature, PyObject* const* arguments, Py_ssize_t positional,
           PyObject* keyword_names, PyObject** values) {
  if (positional > signature.positional) return refuse_number(signature, positional);
  for (Py_ssize_t i = 0; i < positional; ++i) values[i] = arguments[i];
  const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* const name = PyTuple_GET_ITEM(keyword_names, k);
    const int i = find_parameter(signature, name);
    if (i < 0) return refuse_keyword(signature, name);
    if (values[i] != nullptr) return refuse_twice(signature, name);
    values[i] = arguments[positional + k];
  }
  for (int i = 0; i < signature.required; ++i) {
    if (values[i] == nullptr) return refuse_without(signature, i);
  }
  return true;
}

bool read_double(const char* function, const char* argument, PyObject* value, double& result) {
  if (to_double(value, result)) return true;
  const bool is_wrong_type = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
  // Errors of PyTorch's tensors vary.
  if (!is_wrong_type && !(has_elements(value) && value_is_at_fault())) return false;
  PyErr_Clear();
  return refuse_wrong_type(function, argument, value, "a number");
}

bool refuse_overflow(const char* function, const char* argument, PyObject* value) {
  PyErr_Format(PyExc_ValueError, "%s: %s is %s, which does not fit float32", function, argument,
               text_of(value).c_str());
  return false;
}

bool read_bool(const char* function, const char* argument, PyObject* value, bool& result) {
  if (value == nullptr) return true;
  const int truth = PyNumber_Check(value) == 0 ? -1 : PyObject_IsTrue(value);
  result = truth == 1;
  if (truth >= 0) return true;
  if (PyErr_Occurred() != nullptr) {
    if (!value_is_at_fault()) return false;
    PyErr_Clear();  // such as an array of 2 elements
  }
  return refuse_wrong_type(function, argument, value, "a bool");
}

bool read_any_bound(const char* function, const char* argument, PyObject* value, Scalar& result) {
  if (PyLong_Check(value)) return read_integer(value, result);
  if (PyIndex_Check(value) && !PyFloat_Check(value)) {  // NumPy's integer scalars
    const Reference index(PyNumber_Index(value));
    if (index) return read_integer(index.get(), result);
    if (!value_is_at_fault()) return false;
    PyErr_Clear();  // such as an array of floats with 1 element
  }
  double wide = 0;
  if (!read_double(function, argument, value, wide)) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return false;
    PyErr_Clear();
    return refuse_bound(function, argument, value);
  }
  result = Scalar(wide);
  const bool may_be_longer = std::fabs(wide) >= 0x1p53 && std::fabs(wide) <= 0x1p64;
  return PyFloat_Check(value) || !may_be_longer || read_whole(value, result);
}

bool read_scale_bias(const char* function, PyObject* value, std::optional<ScaleBias>& result) {
  if (!is_given(value)) return true;
  const Reference scale(PyObject_GetAttrString(value, "scale"));
  const Reference bias(scale ? PyObject_GetAttrString(value, "bias") : nullptr);
  if (!bias)
    return value_is_at_fault() &&
           refuse_wrong_type(function, "scale_bias", value, "a ScaleBias or None");
  ScaleBias read;
  const bool done = read_float(function, "scale of scale_bias", scale.get(), read.scale) &&
                    read_float(function, "bias of scale_bias", bias.get(), read.bias);
  result = read;
  return done;
}

PyObject* set_error() {
  try {
    throw;
  } catch (const TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace dmlops::python
