/* The C interface: operators on views, a DirectML descriptor that is compiled and dispatched, and
   error messages. C99. */
#include <dmlops/dmlops.h>
#include <math.h>
#include <stdio.h>

/* Prints the message of a call that failed. */
static int failed(dmlops_status status) {
  if (status == DMLOPS_SUCCESS) return 0;
  fprintf(stderr, "error %d: %s\n", (int)status, dmlops_last_error());
  return 1;
}

/* clip and leaky_relu of a matrix, the result transposed. */
static int run_on_views(void) {
  const float x[2][3] = {{-3, 0.5f, 9}, {1, 2, 3}};
  float y[3][2];
  const int64_t sizes[] = {2, 3};
  const dmlops_scalar min = {DML_TENSOR_DATA_TYPE_FLOAT64, {0}};
  const dmlops_scalar max = {DML_TENSOR_DATA_TYPE_FLOAT64, {6}};
  dmlops_view input, output;
  dmlops_activation leaky_relu;

  if (failed(dmlops_packed_view(x, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, &input))) return 0;
  output = input;
  output.data = y;
  output.strides[0] = sizeof y[0][0];
  output.strides[1] = sizeof y[0];

  if (failed(dmlops_clip(&input, &min, &max, NULL, &output))) return 0;
  printf("clip: %g %g %g\n", y[0][0], y[1][0], y[2][0]);
  if (y[0][0] != 0 || y[1][0] != 0.5f || y[2][0] != 6 || y[2][1] != 3) return 0;

  if (failed(dmlops_default_activation(DML_OPERATOR_ACTIVATION_LEAKY_RELU, &leaky_relu))) return 0;
  leaky_relu.parameters[0] = 0.125f;
  if (failed(dmlops_activate(&leaky_relu, &input, &output))) return 0;
  printf("leaky_relu: %g %g %g\n", y[0][0], y[1][0], y[2][0]);
  return y[0][0] == -0.375f && y[1][0] == 0.5f && y[2][0] == 9;
}

/* DML_ACTIVATION_LOG_SOFTMAX1 of a row. */
static int run_descriptor(void) {
  const uint32_t sizes[] = {1, 4}, axes[] = {1};
  const float x[4] = {5, 5, 5, 5};
  float y[4] = {0, 0, 0, 0};
  DML_BUFFER_TENSOR_DESC buffer = {
      DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, NULL, NULL, 0, 0};
  DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, NULL};
  DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC log_softmax = {NULL, NULL, 1, NULL};
  DML_OPERATOR_DESC desc = {DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, NULL};
  dmlops_binding input = {NULL, 0, sizeof x, 0}, output = {NULL, 0, sizeof y, 0};
  dmlops_compiled_operator* compiled = NULL;
  dmlops_status status;

  buffer.Sizes = sizes;
  if (failed(dmlops_calc_buffer_tensor_size(&buffer, &buffer.TotalTensorSizeInBytes))) return 0;
  tensor.Desc = &buffer;
  log_softmax.InputTensor = log_softmax.OutputTensor = &tensor;
  log_softmax.Axes = axes;
  desc.Desc = &log_softmax;
  input.buffer = (void*)x; /* inputs are never written */
  output.buffer = y;

  if (failed(dmlops_compile(&desc, DML_FEATURE_LEVEL_5_1, NULL, 0, &compiled))) return 0;
  status = dmlops_dispatch(compiled, &input, 1, &output, 1);
  dmlops_release(compiled);
  if (failed(status)) return 0;
  printf("log_softmax: %g\n", y[0]);
  if (fabs((double)y[0] + 1.3862943611198906) > 1e-6) return 0;

  /* A lower level refuses the operator with a message. */
  status = dmlops_validate(&desc, DML_FEATURE_LEVEL_5_0);
  printf("error %d: %s\n", (int)status, dmlops_last_error());
  return status == DMLOPS_VALIDATION_ERROR;
}

int main(void) {
  if (dmlops_abi_version() != DMLOPS_ABI_VERSION) {
    fprintf(stderr, "the library's binary interface is another version\n");
    return 1;
  }
  printf("dmlops %s\n", dmlops_version());
  if (!run_on_views() || !run_descriptor()) {
    puts("Wrong!");
    return 1;
  }
  puts("All as it should be.");
  return 0;
}
