// An owned reference, or null.
#pragma once

#include <Python.h>

namespace dmlops::python {

class Reference {
 public:
  explicit Reference(PyObject* object) : object_(object) {}
  ~Reference() { Py_XDECREF(object_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* const object_;
};

}  // namespace dmlops::python
