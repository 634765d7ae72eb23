package nodespec

// loggedCommandLine returns a command line under kube-log-runner, which appends the program's standard output to the
// log file. The rotation flags of kube-log-runner are not used: Windows refuses to rename a file that another process
// has open, and after one refusal kube-log-runner writes no more output. Source:
// k8s.io/component-base/logs/kube-log-runner/internal/logrotation.
func loggedCommandLine(in Inputs, p *programs, name string, commandLine ...string) []string {
	runner := []string{p.executablePath("kube-log-runner.exe"), "-log-file=" + LogPath(name)}
	if interval := in.LogSettings.FlushInterval; interval > 0 {
		runner = append(runner, "-flush-interval="+interval.String())
	}
	return append(runner, commandLine...)
}

// rotatedLogs returns the logs that the agent rotates. hybrid-overlay-node rotates its own log.
func rotatedLogs(in Inputs, services []Service) []Log {
	size, age := in.LogSettings.fileSizeBytes(), in.LogSettings.FileAge
	if size == 0 && age == 0 {
		return nil
	}
	var list []Log
	for _, service := range services {
		if service.Name != ServiceHybridOverlay && service.Name != ServiceAgent {
			list = append(list, Log{Path: LogPath(service.Name), MaxBytes: size, MaxAge: age})
		}
	}
	return list
}
