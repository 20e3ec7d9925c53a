// Single-steps through calls and prints how often each instruction was executed, for
// instructions.py. Linux on x86-64 only.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "dmlops/activations.hpp"
#include "dmlops/runtime.hpp"

namespace dmlops::bench {
namespace {

constexpr std::int64_t kCacheLine = 64, kColumns = 256;

// The elements of a matrix, `offset` bytes after the beginning of a cache line.
class Matrix {
 public:
  Matrix(DataType type, std::int64_t rows, std::int64_t columns, std::int64_t offset = 0)
      : memory_(static_cast<std::size_t>(rows * columns * 8 + 2 * kCacheLine)) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    char* const line = memory_.data() + kCacheLine - begin % kCacheLine;
    const auto size = static_cast<std::int64_t>(element_size(type));
    view_ = {line + offset, type, 2, {rows, columns}, {columns * size, size}};
  }
  const TensorView& view() const { return view_; }

 private:
  std::vector<char> memory_;
  TensorView view_;
};

// The counted calls, on one row of elements or on rows of kColumns.
struct Case {
  std::string name;
  DataType type;
  bool one_row;
  std::function<void(const ConstTensorView& input, const TensorView& output)> call;
};

std::vector<Case> cases() {
  const Scalar min(std::int64_t{0}), max(std::int64_t{1});
  const auto clipped = [=](const ConstTensorView& input, const TensorView& output) {
    clip(input, min, max, std::nullopt, output);
  };
  const auto hard = [](const ConstTensorView& input, const TensorView& output) {
    hard_sigmoid(input, 0.2F, 0.5F, output);
  };
  // The input's memory serves as parameters, whose values do not affect the counts.
  const auto normalized = [](bool columns, bool relu) {
    return [=](const ConstTensorView& input, const TensorView& output) {
      ConstTensorView parameter = input;
      parameter.sizes[0] = 1;
      if (!columns) parameter.sizes[1] = 1;
      const FusedActivation activation{Activation::relu, {}};
      batch_normalization({input, parameter, parameter, parameter, parameter}, 1,
                          relu ? std::optional(activation) : std::nullopt, output);
    };
  };
  std::vector<Case> all;
  for (const DataType type : {DataType::float32, DataType::float16, DataType::uint8,
                              DataType::int16, DataType::int32, DataType::int64}) {
    all.push_back({"clip", type, true, clipped});
  }
  for (const DataType type : {DataType::float32, DataType::float16}) {
    all.push_back({"hard_sigmoid", type, true, hard});
    all.push_back({"batch_normalization", type, true, normalized(false, false)});
    all.push_back({"batch_normalization, relu", type, true, normalized(false, true)});
    all.push_back({"batch_normalization, columns", type, false, normalized(true, false)});
  }
  return all;
}

// Stops before and after the second call: the first one chooses kernels and allocates.
[[noreturn]] void run(const Case& c, std::int64_t count, std::int64_t offset) {
  const std::int64_t columns = c.one_row ? count : kColumns;
  const Matrix input(c.type, count / columns, columns);
  const Matrix output(c.type, count / columns, columns, offset);
  c.call(input.view(), output.view());
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
  c.call(input.view(), output.view());
  raise(SIGSTOP);
  _exit(0);
}

// The execution count of each instruction, by address.
std::map<std::uint64_t, long> count_instructions(const std::function<void()>& child) {
  std::map<std::uint64_t, long> counts;
  const pid_t process = fork();
  if (process == 0) child();
  int status = 0;
  waitpid(process, &status, 0);
  for (;;) {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, process, nullptr, &registers);
    if (ptrace(PTRACE_SINGLESTEP, process, nullptr, nullptr) != 0) break;
    waitpid(process, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    ++counts[registers.rip];
  }
  kill(process, SIGKILL);
  waitpid(process, &status, 0);
  return counts;
}

// Lines of "address count", under a heading with the coordinates.
void print(const Case& c, const std::string& isa, std::int64_t count, std::int64_t offset) {
  const auto counts = count_instructions([&] { run(c, count, offset); });
  std::printf("%s/%s/%s/%lld/%lld\n", c.name.c_str(), name(c.type), isa.c_str(),
              static_cast<long long>(count), static_cast<long long>(offset));
  for (const auto& [address, times] : counts) {
    std::printf("%llx %ld\n", static_cast<unsigned long long>(address), times);
  }
}

// Restarts the program without address randomization, which some branches depend on.
void fix_addresses(char** argv) {
  constexpr unsigned long ask = 0xffffffff;
  const int now = personality(ask);
  if ((now & ADDR_NO_RANDOMIZE) != 0) return;
  personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
  if ((personality(ask) & ADDR_NO_RANDOMIZE) != 0) execv("/proc/self/exe", argv);
}

}  // namespace
}  // namespace dmlops::bench

int main(int argc, char** argv) {
  using namespace dmlops::bench;
  constexpr std::int64_t few = 2048, many = 4096, half_offset = 32;
  fix_addresses(argv);
  dmlops::set_num_threads(1);
  std::vector<std::string> isas(argv + 1, argv + argc);
  if (isas.empty()) isas = dmlops::available_isas();
  for (const std::string& isa : isas) {
    dmlops::set_isa(isa);
    const std::int64_t vector_bytes = isa == "avx512" ? 64 : isa == "avx2" ? 32 : 16;
    for (const Case& c : cases()) {
      const auto lanes = vector_bytes / static_cast<std::int64_t>(element_size(c.type));
      print(c, isa, few, 0);
      print(c, isa, many, 0);
      if (!c.one_row) continue;
      print(c, isa, few + 1, 0);
      print(c, isa, few + lanes - 1, 0);
      print(c, isa, few, half_offset);
    }
  }
}
