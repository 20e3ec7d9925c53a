// A program that loads the library by name and unloads it after a call.
#include <cstdint>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vector>

#include "dmlops/dmlops.h"

namespace {

template <class Function>
Function* function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// The pool's threads outlive dlclose() and run the library's code.
TEST(Unload, KeepsTheLibraryForItsThreads) {
  void* const library = dlopen(DMLOPS_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* const set_num_threads =
      function<decltype(dmlops_set_num_threads)>(library, "dmlops_set_num_threads");
  auto* const packed_view = function<decltype(dmlops_packed_view)>(library, "dmlops_packed_view");
  auto* const activate = function<decltype(dmlops_activate)>(library, "dmlops_activate");
  std::vector<float> x(std::size_t{1} << 20);
  const auto size = static_cast<int64_t>(x.size());
  dmlops_view view;
  const dmlops_activation tanh = {DML_OPERATOR_ACTIVATION_TANH, {0, 0}};
  ASSERT_EQ(set_num_threads(2), DMLOPS_SUCCESS);
  ASSERT_EQ(packed_view(x.data(), DML_TENSOR_DATA_TYPE_FLOAT32, 1, &size, &view), DMLOPS_SUCCESS);
  ASSERT_EQ(activate(&tanh, &view, &view), DMLOPS_SUCCESS);
  ASSERT_EQ(dlclose(library), 0);
  EXPECT_NE(dlopen(DMLOPS_SHARED_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
