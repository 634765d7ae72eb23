package hostcost

import "testing"

func TestCosts(t *testing.T) {
	a, b := Cost{Connections: 2, Execs: 1, Received: 5, Sent: 1}, Cost{Connections: 1, Execs: 8, Processes: 3, Services: 4,
		Reboots: 1, SFTPSessions: 1, PowerShell: 1}
	if got := Worst([]Cost{a, b}); got != (Cost{Connections: 2, Execs: 8, Processes: 3, Services: 4, Reboots: 1,
		SFTPSessions: 1, PowerShell: 1, Received: 5, Sent: 1}) {
		t.Errorf("worst is %+v", got)
	}
	total := Sum([]Cost{a, b})
	if total.Connections != 3 || total.Execs != 9 || total.Minus(b) != a {
		t.Errorf("sum is %+v", total)
	}
}
