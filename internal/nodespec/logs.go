package nodespec

// logPath is where a service logs.
func logPath(service string) string { return LogDirectory(service) + `\` + service + ".log" }

// logged runs a program that logs to its standard output under kube-log-runner, which writes and rotates its log file.
func logged(in Inputs, p *programs, name string, commandLine ...string) []string {
	runner := append([]string{p.path("kube-log-runner.exe"), "-log-file=" + logPath(name)}, in.LogSettings.arguments()...)
	return append(runner, commandLine...)
}

// logs returns the logs of programs that cannot rotate theirs and do not run under kube-log-runner, whose output would
// not be a file but the service manager's: they append to them by a flag of their own.
func logs(in Inputs) []Log {
	size, age := in.LogSettings.bytes(), in.LogSettings.FileAge
	if size == 0 && age == 0 {
		return nil
	}
	return []Log{
		{Path: logPath("containerd"), MaxBytes: size, MaxAge: age},
		{Path: logPath(ServiceExporter), MaxBytes: size, MaxAge: age},
		{Path: logPath(ServiceCSIProxy), MaxBytes: size, MaxAge: age},
	}
}
