/*
 * The C interface, for C99 and for languages that call C. Operators run on views of the caller's
 * memory, or are compiled from DirectML's descriptors and dispatched on buffers. The data types,
 * rules and results are those of the C++ interface.
 */
#ifndef DMLOPS_DMLOPS_H
#define DMLOPS_DMLOPS_H

#include <stddef.h>
#include <stdint.h>

#include "dmlops/directml_types.h"
#include "dmlops/export.h"

/* NOLINTBEGIN(readability-identifier-naming, modernize-redundant-void-arg): C */
#if defined(__cplusplus)
extern "C" {
#endif

/** \cond */
#if !defined(__cplusplus)
/* An error with -fshort-enums: the library's enumerations have 4 bytes. */
typedef char dmlops_enumerations_have_4_bytes[sizeof(DML_TENSOR_DATA_TYPE) == 4 ? 1 : -1];
#endif
/** \endcond */

/** The result of a function. Unless it is DMLOPS_SUCCESS, no output has been written. */
typedef enum dmlops_status {
  DMLOPS_SUCCESS = 0,          /**< done */
  DMLOPS_INVALID_ARGUMENT = 1, /**< a wrong size or value, or a null pointer */
  DMLOPS_TYPE_ERROR = 2,       /**< a data type that the operator does not accept */
  DMLOPS_VALIDATION_ERROR = 3, /**< a descriptor that breaks a rule */
  DMLOPS_BINDING_ERROR = 4,    /**< a binding that breaks a rule */
  DMLOPS_OUT_OF_MEMORY = 5,    /**< an allocation failed */
  DMLOPS_UNKNOWN_ERROR = 6     /**< any other error of the system */
} dmlops_status;

/** The message of this thread's last call that failed; "" before the first. Valid until the next
    call that fails. */
DMLOPS_API const char* dmlops_last_error(void);

/** The library's version: "0.1.0". */
DMLOPS_API const char* dmlops_version(void);

/** Version of the library's binary interface, which must equal DMLOPS_ABI_VERSION. */
DMLOPS_API int32_t dmlops_abi_version(void);

/** The number of threads that a large operator is split over. */
DMLOPS_API dmlops_status dmlops_get_num_threads(int32_t* count);

/** Sets the number of threads, 1 to 1024. No result depends on the number. */
DMLOPS_API dmlops_status dmlops_set_num_threads(int32_t count);

/** Maximum number of dimensions. */
#define DMLOPS_MAX_RANK 8

/** Memory as a tensor. Operators read their inputs and write their output only. */
typedef struct dmlops_view {
  void* data;                       /**< the element whose indices are all 0 */
  DML_TENSOR_DATA_TYPE type;        /**< of the elements */
  int32_t rank;                     /**< number of dimensions, 0 to DMLOPS_MAX_RANK */
  int64_t sizes[DMLOPS_MAX_RANK];   /**< of the dimensions; 0 is an empty tensor */
  int64_t strides[DMLOPS_MAX_RANK]; /**< in bytes; negative and zero are allowed */
} dmlops_view;

/** Fills a view of a packed tensor: in row-major order, without gaps. */
DMLOPS_API dmlops_status dmlops_packed_view(const void* data, DML_TENSOR_DATA_TYPE type,
                                            int32_t rank, const int64_t* sizes, dmlops_view* view);

/** A number. */
typedef struct dmlops_scalar {
  DML_TENSOR_DATA_TYPE type; /**< FLOAT64, INT64 or UINT64 */
  union {
    double float64;  /**< valid if `type` is FLOAT64 */
    int64_t int64;   /**< valid if `type` is INT64 */
    uint64_t uint64; /**< valid if `type` is UINT64 */
  } value;           /**< the number itself */
} dmlops_scalar;

/** max(min, min(x, max)), where x is scaled first: x * Scale + Bias. A null `min`, `max` or
    `scale_bias` stands for none. */
DMLOPS_API dmlops_status dmlops_clip(const dmlops_view* input, const dmlops_scalar* min,
                                     const dmlops_scalar* max, const DML_SCALE_BIAS* scale_bias,
                                     const dmlops_view* output);

/** An activation of one input and up to two numbers. */
typedef struct dmlops_activation {
  DML_OPERATOR_TYPE type; /**< such as DML_OPERATOR_ACTIVATION_RELU */
  float parameters[2]; /**< the FLOAT fields of its DirectML struct, in order; others are ignored */
} dmlops_activation;

/** Fills an activation with its default parameters. */
DMLOPS_API dmlops_status dmlops_default_activation(DML_OPERATOR_TYPE type,
                                                   dmlops_activation* activation);

/** Applies an activation to each element. */
DMLOPS_API dmlops_status dmlops_activate(const dmlops_activation* activation,
                                         const dmlops_view* input, const dmlops_view* output);

/** scale * (x - mean) / sqrt(variance + epsilon) + bias, then the activation unless it is null. The
    four parameters have the input's rank, each size 1 or the input's. */
DMLOPS_API dmlops_status dmlops_batch_normalization(
    const dmlops_view* input, const dmlops_view* mean, const dmlops_view* variance,
    const dmlops_view* scale, const dmlops_view* bias, float epsilon,
    const dmlops_activation* fused_activation, const dmlops_view* output);

/** (x - max) - log(sum(exp(x - max))), with maximum and sum over the listed axes together. A
    negative axis counts from the end. */
DMLOPS_API dmlops_status dmlops_log_softmax(const dmlops_view* input, const int64_t* axes,
                                            size_t axis_count, const dmlops_view* output);

/** A compiled operator. Immutable: many threads may dispatch it at once. */
typedef struct dmlops_compiled_operator dmlops_compiled_operator;

/** DML_BUFFER_BINDING. As DirectML requires, the size is a multiple of 4 and at least the tensor's
    TotalTensorSizeInBytes. */
typedef struct dmlops_binding {
  void* buffer;           /**< the memory; null is DML_BINDING_TYPE_NONE. Inputs are not written. */
  uint64_t offset;        /**< of the tensor in the memory, in bytes */
  uint64_t size_in_bytes; /**< from the offset on */
  int32_t is_array;       /**< not 0: an array that may end with the tensor's last element, not a
                               DirectML buffer; its size need not be a multiple of 4 */
} dmlops_binding;

/** Returns the lowest DML_FEATURE_LEVEL that accepts a descriptor. */
DMLOPS_API dmlops_status dmlops_required_feature_level(const DML_OPERATOR_DESC* desc,
                                                       uint32_t* feature_level);

/** Checks a descriptor by the rules of a DML_FEATURE_LEVEL. */
DMLOPS_API dmlops_status dmlops_validate(const DML_OPERATOR_DESC* desc, uint32_t feature_level);

/** DMLCalcBufferTensorSize of a tensor, whose TotalTensorSizeInBytes may still be 0. */
DMLOPS_API dmlops_status dmlops_calc_buffer_tensor_size(const DML_BUFFER_TENSOR_DESC* desc,
                                                        uint64_t* size_in_bytes);

/** Compiles an operator, which the caller releases. No pointer into the descriptor is kept.
    `initial` binds the inputs that are OWNED_BY_DML, whose bytes are copied: a binding for each
    input, or none at all. `compiled` is null after a failure. */
DMLOPS_API dmlops_status dmlops_compile(const DML_OPERATOR_DESC* desc, uint32_t feature_level,
                                        const dmlops_binding* initial, size_t initial_count,
                                        dmlops_compiled_operator** compiled);

/** Runs a compiled operator on a binding for each input and output, in the order of the DirectML
    struct's fields. */
DMLOPS_API dmlops_status dmlops_dispatch(const dmlops_compiled_operator* compiled,
                                         const dmlops_binding* inputs, size_t input_count,
                                         const dmlops_binding* outputs, size_t output_count);

/** Releases a compiled operator; null is allowed. */
DMLOPS_API void dmlops_release(dmlops_compiled_operator* compiled);

#if defined(__cplusplus)
}
#endif
/* NOLINTEND(readability-identifier-naming, modernize-redundant-void-arg) */

#endif
