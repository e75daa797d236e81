// How a guard next to a rank (mpi/guard_process.h) is heard where its rank is not: on the standard
// error of the launcher, and by the process that supervises the launcher (launch_supervisor.h).
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>

namespace snug::comm {

// The environment variable that gives ranks the process of the LaunchSupervisor that started them.
inline constexpr const char* kSupervisor = "SNUG_LAUNCHED";

// What a supervisor is sent by a guard that said why the job ends. A supervisor blocks it before it
// starts anything.
inline int guard_signal() { return SIGRTMIN; }

// Writes a line at the end of what the launcher has written on its standard error. Where that is a
// file, the launcher goes on after the line, since both write with one offset; where the system
// does not let this process have the launcher's descriptor (Linux before 5.6, rules on tracing),
// the line is added to the file's end, and also goes the way of what the rank writes, by which it
// is not overwritten. Nothing where neither can be opened.
void say_for_launcher(pid_t launcher, pid_t rank, const std::string& line);

// Lets the supervisor of this launcher know, where there is one, that a guard said why the job
// ends.
void tell_supervisor(pid_t launcher);

}  // namespace snug::comm
