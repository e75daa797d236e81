// A tokenizer read from a Hugging Face model folder: text to ids and back, with the ids that the
// `tokenizers` library gives for the same tokenizer.json. Byte-pair encodings, byte-level (GPT-2,
// Llama 3, Qwen2) and SentencePiece-style (Llama 2, Mistral, Phi-3). A setting of the file that
// Snug does not support is a UserError that names the component. The file's "truncation" and
// "padding" are ignored: Snug truncates and pads by its own settings (max_length). Immutable after
// loading; every const function may be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/added_tokens.h"

namespace snug::text {

struct ChatSettings;

// Whether the folder of an adapter (empty: there is none) has a tokenizer.json of another size than
// the model's: one with more tokens, perhaps.
bool has_other_tokenizer(const std::filesystem::path& adapter, const std::filesystem::path& model);

class Tokenizer {
 public:
  // Reads tokenizer.json, else a SentencePiece model (sentencepiece_folder.h), and, where present,
  // tokenizer_config.json, special_tokens_map.json, chat_template.jinja,
  // additional_chat_templates/, generation_config.json and config.json. Throws UserError. If the
  // folder of an adapter is given, its settings for conversations and for the ends of texts take
  // precedence over the model's: its tokenizer_config.json, chat templates and
  // generation_config.json, as far as they exist. If the model's table has fewer `rows` than there
  // are ids, ids without a row are not used for padding or ends, and a text that needs one is
  // refused (require_rows). `added`: tokens to add, as special ones, as far as the tokenizer lacks
  // them, with the ids that the library would give them; UserError where the model has no row for
  // one.
  static Tokenizer from_folder(const std::string& folder, int64_t rows = kAnyRows,
                               const std::string& adapter = "",
                               std::span<const std::string> added = {});
  static constexpr int64_t kAnyRows = std::numeric_limits<int64_t>::max();

  // Makes a tokenizer from the contents of the two files; `name` stands for tokenizer.json in
  // messages. `config` may be empty.
  static Tokenizer from_text(std::string_view tokenizer_json, std::string_view config,
                             const std::string& name, int64_t rows = kAnyRows);

  // The text of the tokenizer.json from which from_folder makes the tokenizer: that of the folder,
  // or what is made of its SentencePiece model. `path` becomes the file that was read.
  static std::string json_of_folder(const std::string& folder, std::string& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Throws UserError if `text` is not valid UTF-8. With `add_special_tokens`, the post-processor
  // adds its tokens around the text (often BOS before it).
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens = true) const;

  // Throws UserError that names the token if the model has no row for one of `ids`. encode calls
  // it; code that assembles ids from the parts of encode, or adds some, must call it too.
  void require_rows(std::span<const int32_t> ids) const;

  // Bytes that are not UTF-8 become U+FFFD; ids without a token are left out.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  // The two steps of encode, for code that must know where tokens are: the spans of added tokens,
  // and the ids of ordinary text between them. `at_text_start`: no text precedes.
  std::vector<TextSpan> split_added_tokens(std::string_view text) const;
  void encode_ordinary(std::string_view text, bool at_text_start, std::vector<int32_t>& ids) const;
  std::span<const int32_t> ids_before() const;  // added by the post-processor before a text
  std::span<const int32_t> ids_after() const;   // and after it

  // The number of rows that an embedding needs for all texts: the largest id + 1.
  int32_t vocabulary_size() const;
  std::optional<int32_t> id_of(std::string_view token) const;
  std::optional<std::string_view> token_of(int32_t id) const;
  // The bytes that a token adds to a text that has begun, perhaps a part of a character. Nothing
  // for a special token, for an id without a token or without a row, and where the bytes depend on
  // the token's neighbours.
  std::optional<std::string> bytes_of(int32_t id) const;
  bool is_special(int32_t id) const;
  // From now on this token, if there is one, is a part of texts as those that are not special are:
  // a mark of which answers are made. Before any other thread uses the tokenizer.
  void show_special(std::string_view token);
  bool is_added(int32_t id) const;  // an added token, whether special or not
  // Those that from_folder added.
  std::span<const int32_t> new_ids() const;

  // The id that tokenizer_config.json names or, in this order, special_tokens_map.json,
  // generation_config.json or config.json; nothing if none names an id of the vocabulary.
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;
  // Ids that end a generated text: eos_id and those of generation_config.json or, if that names
  // none, of config.json.
  std::span<const int32_t> stop_ids() const;

  // The folder's settings for conversations.
  const ChatSettings& chat_settings() const;

  int64_t host_bytes() const;

  // The components, for encoding a text in pieces (text_encoder.h).
  struct Parts;
  const Parts& parts() const { return *parts_; }

 private:
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  struct Source {
    std::string_view tokenizer_json;
    std::string_view config;
    std::string name;
  };
  static std::unique_ptr<Parts> read_parts(const Source& source,
                                           std::span<const std::string> added = {});
  std::unique_ptr<Parts> parts_;
};

}  // namespace snug::text
