package main

import "time"

// leastLife is the minimum run time of an operator before a restart: an operator that fails at once would fail
// again.
const leastLife = 5 * time.Second

// restartOperator restarts an operator that has ended, as its Deployment would. After a kill, the user sees
// that no state is lost.
func (d *demo) restartOperator() error {
	ended := d.operator
	if d.once || time.Since(ended.Started) < leastLife {
		return ended.Failure()
	}
	d.output.step("the operator ended (%v) and is started again", ended.Err())
	next, err := ended.Again()
	if err == nil {
		d.operator = next
	}
	return err
}
