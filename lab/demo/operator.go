package main

import "time"

// minRunTime is the minimum run time of an operator before a restart: an operator that fails at once would fail
// again.
const minRunTime = 5 * time.Second

// restartOperator restarts an operator that has ended, as its Deployment would. After a kill, the user sees
// that no state is lost.
func (d *demo) restartOperator() error {
	ended := d.operator
	if d.once || time.Since(ended.Started) < minRunTime {
		return ended.Failure()
	}
	d.output.printStep("the operator ended (%v) and is started again", ended.Err())
	next, err := ended.StartAgain()
	if err == nil {
		d.operator = next
	}
	return err
}
