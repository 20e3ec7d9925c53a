// The kernels of one instruction set. Compiled once for each, with its flags and its name as
// DMLOPS_TARGET.
#include "kernels/activation_rows.hpp"
#include "kernels/batch_normalization.hpp"
#include "kernels/clip.hpp"
#include "kernels/log_softmax.hpp"
#include "kernels/log_softmax_parts.hpp"
#include "kernels/shrink.hpp"

#define DMLOPS_STRING_(name) #name
#define DMLOPS_STRING(name) DMLOPS_STRING_(name)

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class T>
constexpr void set_clip(KernelTable& table, DataType type) {
  table.clip[static_cast<std::size_t>(type)] = &clip<T>;
  table.clip_scaled[static_cast<std::size_t>(type)] = &clip_scaled<T>;
}

template <class T>
constexpr void set_shrink(KernelTable& table, DataType type) {
  table.shrink_integer[static_cast<std::size_t>(type)] = &shrink_integer<T>;
}

template <class U>
void copy(const Rows& rows, const void*) {
  map_rows<U, Vec<U>, 4>(rows, [](Vec<U> x) DMLOPS_LAMBDA_INLINE { return x; });
}

template <class... Acts>
constexpr void set_activations(KernelTable& table, List<Acts...>) {
  static_assert(sizeof...(Acts) == kActivationCount,
                "one functor for each Activation, in its order");
  std::size_t i = 0;
  ((table.activation[i][0] = &activation<float, Acts>,
    table.activation[i][1] = &activation<float16, Acts>,
    table.batch_normalization[i][0] = &batch_normalization<float, Acts>,
    table.batch_normalization[i][1] = &batch_normalization<float16, Acts>, ++i),
   ...);
}

constexpr KernelTable make_table() {
  KernelTable table = {};
  table.name = DMLOPS_STRING(DMLOPS_TARGET);
  table.copy[0] = &copy<std::uint8_t>;
  table.copy[1] = &copy<std::uint16_t>;
  table.copy[2] = &copy<std::uint32_t>;
  table.copy[3] = &copy<std::uint64_t>;
  set_clip<float>(table, DataType::float32);
  set_clip<float16>(table, DataType::float16);
  set_clip<std::int8_t>(table, DataType::int8);
  set_clip<std::int16_t>(table, DataType::int16);
  set_clip<std::int32_t>(table, DataType::int32);
  set_clip<std::int64_t>(table, DataType::int64);
  set_clip<std::uint8_t>(table, DataType::uint8);
  set_clip<std::uint16_t>(table, DataType::uint16);
  set_clip<std::uint32_t>(table, DataType::uint32);
  set_clip<std::uint64_t>(table, DataType::uint64);
  set_shrink<std::int8_t>(table, DataType::int8);
  set_shrink<std::int16_t>(table, DataType::int16);
  set_shrink<std::int32_t>(table, DataType::int32);
  set_shrink<std::uint8_t>(table, DataType::uint8);
  set_shrink<std::uint16_t>(table, DataType::uint16);
  set_shrink<std::uint32_t>(table, DataType::uint32);
  set_activations(table, Activations());
  table.log_softmax[0] = &log_softmax<float>;
  table.log_softmax[1] = &log_softmax<float16>;
  table.log_softmax_sums[0] = &log_softmax_sums<float>;
  table.log_softmax_sums[1] = &log_softmax_sums<float16>;
  table.log_softmax_finish[0] = &log_softmax_finish<float>;
  table.log_softmax_finish[1] = &log_softmax_finish<float16>;
  return table;
}

constexpr KernelTable kTable = make_table();

}  // namespace

extern const KernelTable& table;
const KernelTable& table = kTable;

}  // namespace dmlops::DMLOPS_TARGET
