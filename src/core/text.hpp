// Text of messages.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace dmlops {

// A part of a message: a view of text, which must outlive it, or an integer in decimal digits.
class TextPart {
 public:
  TextPart(const char* text) : text_(text) {}
  TextPart(const std::string& text) : text_(text) {}
  template <class Integer, std::enable_if_t<std::is_integral_v<Integer>, int> = 0>
  TextPart(Integer number)
      : kind_(std::is_signed_v<Integer> ? Kind::signed_number : Kind::unsigned_number),
        number_(static_cast<std::uint64_t>(number)) {}

  void append_to(std::string& text) const;

 private:
  enum class Kind { text, signed_number, unsigned_number };

  Kind kind_ = Kind::text;
  std::string_view text_;
  std::uint64_t number_ = 0;
};

std::string concat_parts(std::initializer_list<TextPart> parts);

// Returns the parts as one text. The operators of std::string, inlined at each call site, would be
// a tenth of the code outside the kernels.
template <class... Parts>
std::string concat(const Parts&... parts) {
  return concat_parts({TextPart(parts)...});
}

// Returns text with each byte outside of printable ASCII as "\xff".
std::string printable(std::string_view text);

// Returns a number with its noun: "1 dimension", "2 dimensions".
template <class Integer>
std::string counted(Integer count, const char* noun) {
  return concat(count, " ", noun, count == 1 ? "" : "s");
}

// Returns the texts `part(0)` to `part(count - 1)`, separated by commas.
template <class Part>
std::string joined(std::size_t count, const Part& part) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += concat(i == 0 ? "" : ", ", part(i));
  return text;
}

}  // namespace dmlops
