// Other names of fields and roles: a line of fields, a line of roles, and a record.
#include <nlohmann/json.hpp>

#include "fuzz_input.h"
#include "text/record/record_error.h"
#include "text/record/record_form.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  fuzz::FuzzInput input(data, size);
  const auto fields = input.items(';');
  const auto roles = input.items(';');
  text::RecordMapping mapping;
  try {
    mapping = text::RecordMapping(fields, roles);
  } catch (const base::UserError&) {
    return 0;
  }
  text::RawRecord record;
  record.text = input.rest();
  record.number = record.line = 1;
  const std::string path = "data.jsonl";
  fuzz::read_or_refuse(path, [&] {
    const std::string rewritten = mapping.rewritten(record.text, [&](const std::string& what) {
      throw text::RecordError(record.number, what, path, record.line);
    });
    if (rewritten == record.text) return;
    const auto document = nlohmann::json::parse(rewritten);
    for (const std::string& field : fields) {
      const std::string name = field.substr(0, field.find('='));
      if (name.find('.') == std::string::npos)
        fuzz::require(document.contains(name), "what is mapped is there");
    }
  });
  text::RecordRules rules;
  rules.mapping = mapping.is_empty() ? nullptr : &mapping;
  fuzz::read_or_refuse(path, [&] { text::parse_record(record, path, rules); });
  return 0;
}
