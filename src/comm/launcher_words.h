// How a guard next to a rank (mpi/guard_process.h) makes itself heard when its rank cannot: on the
// launcher's standard error, and by the process that supervises the launcher (launch_supervisor.h).
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>

namespace snug::comm {

// The environment variable that tells ranks the process id of the LaunchSupervisor that started
// them.
inline constexpr const char* kSupervisor = "SNUG_LAUNCHED";

// The signal that a guard sends to a supervisor after it has said why the job ends. A supervisor
// blocks it before it starts anything.
inline int guard_signal() { return SIGRTMIN; }

// Appends a line to the launcher's standard error. Where that is a file, the launcher continues
// after the line, since both write through one file offset. Where the system does not give this
// process the launcher's descriptor (Linux before 5.6, or restrictions on tracing), the line is
// appended to the file, and is also written to the rank's standard error, since the launcher may
// overwrite the first copy. Does nothing where neither can be opened.
void say_for_launcher(pid_t launcher, pid_t rank, const std::string& line);

// Tells the supervisor of this launcher, if there is one, that a guard said why the job ends.
void tell_supervisor(pid_t launcher);

}  // namespace snug::comm
