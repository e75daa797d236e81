// A conversation as a file of JSON lines: {"messages": [{"role": ..., "content": ...}, ...]}, which
// `snug train` reads as data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "text/chat/conversation.h"

namespace snug::generate {

// With the line end.
std::string chat_record(const std::vector<text::Message>& messages);

// The messages of a file with one such line; none where there is no file. Throws UserError for
// anything else, and for other fields than these.
std::vector<text::Message> read_chat_record(const std::filesystem::path& path);

// Adds a line. Throws UserError where the file cannot be written.
void append_chat_record(const std::filesystem::path& path,
                        const std::vector<text::Message>& messages);

}  // namespace snug::generate
