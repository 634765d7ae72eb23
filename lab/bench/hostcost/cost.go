// Package hostcost counts the work on simulated hosts, and between them and the operator: connections, commands, bytes and
// restarts.
package hostcost

// Cost counts the work on a host, and between it and the operator.
type Cost struct {
	Connections  int   `json:"connections"`
	Execs        int   `json:"execs"`
	PowerShell   int   `json:"powershell"`
	SFTPSessions int   `json:"sftpSessions"`
	Reboots      int   `json:"reboots"`
	Processes    int   `json:"processStarts"`
	Services     int   `json:"serviceOperations"`
	Received     int64 `json:"bytesReceived"` // by the host, with all that SSH adds
	Sent         int64 `json:"bytesSent"`
}

// Minus returns what was added since.
func (c Cost) Minus(before Cost) Cost {
	return Cost{
		Connections: c.Connections - before.Connections, Execs: c.Execs - before.Execs,
		PowerShell:   c.PowerShell - before.PowerShell,
		SFTPSessions: c.SFTPSessions - before.SFTPSessions, Reboots: c.Reboots - before.Reboots,
		Processes: c.Processes - before.Processes,
		Services:  c.Services - before.Services, Received: c.Received - before.Received, Sent: c.Sent - before.Sent,
	}
}

// Worst returns the largest of each kind, which need not all be of one host.
func Worst(costs []Cost) Cost {
	var w Cost
	for _, c := range costs {
		w = Cost{
			Connections: max(w.Connections, c.Connections), Execs: max(w.Execs, c.Execs),
			PowerShell:   max(w.PowerShell, c.PowerShell),
			SFTPSessions: max(w.SFTPSessions, c.SFTPSessions), Reboots: max(w.Reboots, c.Reboots),
			Processes: max(w.Processes, c.Processes),
			Services:  max(w.Services, c.Services), Received: max(w.Received, c.Received), Sent: max(w.Sent, c.Sent),
		}
	}
	return w
}

// Sum returns the cost of all hosts together.
func Sum(costs []Cost) Cost {
	var s Cost
	for _, c := range costs {
		s = s.Minus(Cost{}.Minus(c))
	}
	return s
}

// Differences returns what each host has cost since.
func Differences(after, before []Cost) []Cost {
	costs := make([]Cost, len(after))
	for i := range after {
		costs[i] = after[i].Minus(before[i])
	}
	return costs
}
