// Shared code of the benchmark programs, and their main function.
#include "bench.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include <benchmark/benchmark.h>

#include "dmlops/runtime.hpp"

namespace dmlops::bench {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kOffset = 16;  // the alignment of large NumPy arrays

std::shared_ptr<char> allocate(std::size_t bytes) {
  constexpr std::align_val_t alignment{kCacheLine};
  char* const memory = static_cast<char*>(::operator new(bytes + kCacheLine, alignment));
  std::shared_ptr<char> owner(memory, [](char* p) { ::operator delete(p, alignment); });
  return {owner, memory + kOffset};
}

void fill(char* data, DataType type, std::size_t bytes) {
  std::minstd_rand random;
  if (type == DataType::float32) {
    std::uniform_real_distribution<float> values(-4, 4);
    for (std::size_t i = 0; i < bytes; i += sizeof(float)) {
      const float value = values(random);
      std::memcpy(data + i, &value, sizeof value);
    }
  } else if (type == DataType::float16) {
    constexpr unsigned int kFour = 0x4400, kSign = 0x8000;
    for (std::size_t i = 0; i < bytes; i += sizeof(float16)) {
      const auto r = static_cast<unsigned int>(random());
      const auto value =
          static_cast<std::uint16_t>((r >> 8) % kFour | ((r & 1u) != 0 ? kSign : 0u));
      std::memcpy(data + i, &value, sizeof value);
    }
  } else {
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(random() >> 8);
  }
}

std::string size_text(std::int64_t bytes) {
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "MiB";
  if (bytes % kKiB == 0) return std::to_string(bytes / kKiB) + "KiB";
  return std::to_string(bytes) + "B";
}

// Measures CPU time, which excludes other processes; with several threads real time, which the
// names of the rows tell.
void add_row(const std::string& name, const std::function<void(benchmark::State&)>& row) {
  auto* const registered = benchmark::RegisterBenchmark(name.c_str(), row);
  if (get_num_threads() > 1) registered->UseRealTime();
}

void measure(benchmark::State& state, std::int64_t traffic, const Work& work) {
  work();  // pages and caches
  for (auto _ : state) {
    work();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * traffic);
}

}  // namespace

Tensor::Tensor(DataType type, const Shape& sizes, const Shape& strides) {
  const auto size = static_cast<std::int64_t>(element_size(type));
  view_.type = type;
  view_.rank = static_cast<int>(sizes.size());
  std::int64_t dense = size,
               last = 0;  // the stride of a dense tensor, the offset of the last element
  for (std::size_t d = sizes.size(); d-- > 0;) {
    view_.sizes[d] = sizes[d];
    view_.strides[d] = strides.empty() ? dense : strides[d] * size;
    last += (sizes[d] - 1) * view_.strides[d];
    dense *= sizes[d];
  }
  const auto bytes = static_cast<std::size_t>(last + size);
  memory_ = allocate(bytes);
  fill(memory_.get(), type, bytes);
  view_.data = memory_.get();
}

const char* short_name(DataType type) {
  switch (type) {
    case DataType::float32:
      return "f32";
    case DataType::float16:
      return "f16";
    case DataType::int8:
      return "i8";
    case DataType::int16:
      return "i16";
    case DataType::int32:
      return "i32";
    case DataType::int64:
      return "i64";
    case DataType::uint8:
      return "u8";
    case DataType::uint16:
      return "u16";
    case DataType::uint32:
      return "u32";
    case DataType::uint64:
      return "u64";
    default:
      return name(type);
  }
}

std::int64_t bytes_of(DataType type, const Shape& sizes) {
  auto bytes = static_cast<std::int64_t>(element_size(type));
  for (const std::int64_t size : sizes) bytes *= size;
  return bytes;
}

void add(const Place& place, std::int64_t traffic, const MakeWork& make) {
  for (const std::string& isa : available_isas()) {
    const std::string name = place.op + "/" + short_name(place.type) + "/" + isa + "/" +
                             place.layout + "/" + size_text(bytes_of(place.type, place.sizes));
    add_row(name, [=](benchmark::State& state) {
      set_isa(isa);
      measure(state, traffic, make());
    });
  }
}

void add_unary(const Place& place, const Unary& call, const Shape& input_strides) {
  // A broadcast input is read from the cache.
  std::int64_t input_bytes = bytes_of(place.type, place.sizes);
  for (std::size_t d = 0; d < input_strides.size(); ++d) {
    if (input_strides[d] == 0) input_bytes /= place.sizes[d];
  }
  add(place, input_bytes + bytes_of(place.type, place.sizes), [=] {
    const Tensor input(place.type, place.sizes, input_strides), output(place.type, place.sizes);
    return [=] { call(input, output); };
  });
}

void add_memcpy(std::int64_t bytes) {
  add_row("memcpy/" + size_text(bytes), [=](benchmark::State& state) {
    const auto size = static_cast<std::size_t>(bytes);
    const std::shared_ptr<char> source = allocate(size), target = allocate(size);
    std::memset(source.get(), 1, size);
    measure(state, 2 * bytes, [&] { std::memcpy(target.get(), source.get(), size); });
  });
}

void add_dense(const std::string& op, const std::vector<DataType>& types, const Unary& call) {
  for (const std::int64_t bytes : {kKiB, 8 * kKiB, 128 * kKiB, 4 * kMiB, 64 * kMiB}) {
    add_memcpy(bytes);
    for (const DataType type : types) {
      add_unary({op, type, "dense", {bytes / static_cast<std::int64_t>(element_size(type))}}, call);
    }
  }
}

}  // namespace dmlops::bench

int main(int argc, char** argv) {
  if (std::getenv("DMLOPS_NUM_THREADS") == nullptr) dmlops::set_num_threads(1);
  dmlops::bench::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("threads", std::to_string(dmlops::get_num_threads()));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
