// Translates messages to DirectML's names.
#include "descriptors/names.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "descriptors/table.hpp"
#include "operators/check.hpp"

namespace dmlops {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return is_lower(c) || is_upper(c) || (c >= '0' && c <= '9') || c == '_'; }

char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }

// "min_max_data_type" to "MinMaxDataType"
std::string camel_case(const std::string& name) {
  std::string text;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') text += begins ? to_upper(c) : c;
    begins = c == '_';
  }
  return text;
}

// "ElementWiseClip1OperatorDesc" to "DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC"
std::string struct_name(const std::string& name) {
  std::string text = "DML";
  for (const char c : name) {
    if (is_upper(c)) text += '_';
    text += to_upper(c);
  }
  return text;
}

bool is_struct(const std::string& word) {
  static constexpr const char* kShared[] = {"BufferBinding", "BufferTensorDesc", "ScaleBias"};
  const OperatorInfos infos = operators();
  return std::find(std::begin(kShared), std::end(kShared), word) != std::end(kShared) ||
         std::any_of(infos.begin(), infos.end(),
                     [&](const OperatorInfo& op) { return word == op.name; });
}

// True for a field of any struct.
bool is_field(const std::string& word) {
  static constexpr const char* kShared[] = {"buffer",
                                            "offset",
                                            "size_in_bytes",
                                            "scale",
                                            "bias",
                                            "data_type",
                                            "flags",
                                            "dimension_count",
                                            "sizes",
                                            "strides",
                                            "total_tensor_size_in_bytes",
                                            "guaranteed_base_offset_alignment"};
  const OperatorInfos infos = operators();
  return std::find(std::begin(kShared), std::end(kShared), word) != std::end(kShared) ||
         std::any_of(infos.begin(), infos.end(), [&](const OperatorInfo& op) {
           return std::any_of(op.begin(), op.end(),
                              [&](const Field& field) { return word == field.name; });
         });
}

// The operators of fusable_names(): "ACTIVATION_ELU, ACTIVATION_CELU, ..."
std::string fusable_operators() {
  constexpr const char* kPrefix = "ACTIVATION_";
  std::string text = kPrefix;
  for (const char c : fusable_names()) {
    text += to_upper(c);
    if (c == ' ') text += kPrefix;
  }
  return text;
}

// True if the word between these positions is the subject of a clause, or an element of it is:
// "min must be an integer", "InputTensor.strides[0] is -1".
bool is_subject(const std::string& message, std::size_t begin, std::size_t end) {
  const std::string before = message.substr(begin < 2 ? 0 : begin - 2, begin < 2 ? begin : 2);
  const bool is_member = begin > 0 && before.back() == '.';
  if (begin != 0 && !is_member && before != ": " && before != "; ") return false;
  if (end < message.size() && message[end] == '[') end = message.find(']', end) + 1;
  for (const char* const verb : {" is", " has", " must", " needs", " are"}) {
    const std::size_t length = std::strlen(verb), after = end + length;
    if (message.compare(end, length, verb) == 0 &&
        (after == message.size() || !is_word(message[after]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string directml_names(const std::string& message) {
  const std::pair<std::string, std::string> phrases[] = {{"spatial=False", "Spatial = FALSE"},
                                                         {fusable_names(), fusable_operators()}};
  std::string text;
  for (std::size_t begin = 0; begin < message.size();) {
    if (!is_word(message[begin])) {
      text += message[begin++];
      continue;
    }
    std::size_t end = begin;
    while (end < message.size() && is_word(message[end])) ++end;
    const std::string word = message.substr(begin, end - begin);
    const auto* const phrase =
        std::find_if(std::begin(phrases), std::end(phrases), [&](const auto& pair) {
          return message.compare(begin, pair.first.size(), pair.first) == 0;
        });
    if (phrase != std::end(phrases)) {
      text += phrase->second;
      end = begin + phrase->first.size();
    } else if (is_struct(word)) {
      text += struct_name(word);
    } else if (is_field(word) &&
               (word.find('_') != std::string::npos || is_subject(message, begin, end))) {
      text += camel_case(word);  // elsewhere a single word is English: "without leading sizes of 1"
    } else {
      text += word;
    }
    begin = end;
  }
  return text;
}

}  // namespace dmlops
