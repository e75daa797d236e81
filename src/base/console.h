// What Snug says to the person in front of it: standard error, and next to it the log of a run.
// Saying something never throws and never stops a job: a line that cannot be written (the reader of
// a pipe went away, the terminal hung up, the disk is full, the descriptor is closed) is dropped,
// and the log tells of the first one. Results go to standard output, where a failure counts.
// All functions may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

namespace snug::base {

// main calls it first. Descriptors 0 to 2 that are closed get a place holder that can neither be
// read nor written, so that no file that is opened later becomes standard error. Writes to pipes
// without readers and to files beyond the size limit become errors instead of signals.
void secure_standard_streams();

// Writes the text to standard error as it is. Makes no heap allocation.
void write_to_console(std::string_view text) noexcept;

// Writes a line, without its end, to standard error and to the log. What others wrote in it is
// shown as shown_text.h has it, and the middle of a long one is left out.
void say_line(std::string_view line) noexcept;

// Writes a line to standard error alone, even where that is left to others: what ends this process.
void say_last_line(std::string_view line) noexcept;

// Writes it to the log alone: to what another process says on standard error.
void log_line(std::string_view line) noexcept;

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_line(fmt::format(format, std::forward<Args>(args)...));
}

// From now on lines go to the log alone, and nothing goes to standard error except errors that end
// the process. A rank that is not the first calls it.
void leave_console_to_others() noexcept;

// Appends every line, with its time, to this file from now on; those said before come first. A log
// that cannot be opened or written is done without.
void keep_log(const std::filesystem::path& path) noexcept;

// Writes results to standard output, what others wrote in them as shown_text.h has it; JSON reads
// back the same. Throws as flush_output does.
void write_to_output(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_to_output(fmt::format(format, std::forward<Args>(args)...));
}

// Hands on what was printed on standard output. Throws std::system_error, with the code
// std::errc::broken_pipe when nobody reads any more, when it was not written, or not whole.
void flush_output();

}  // namespace snug::base
