// The parts of a message.
#include "core/text.hpp"

namespace dmlops {

void TextPart::append_to(std::string& text) const {
  switch (kind_) {
    case Kind::text:
      text += text_;
      break;
    case Kind::signed_number:
      text += std::to_string(static_cast<std::int64_t>(number_));
      break;
    case Kind::unsigned_number:
      text += std::to_string(number_);
      break;
  }
}

std::string concat_parts(std::initializer_list<TextPart> parts) {
  std::string text;
  for (const TextPart& part : parts) part.append_to(text);
  return text;
}

std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      result += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return result;
}

}  // namespace dmlops
