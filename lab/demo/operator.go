package main

import "time"

// leastLife is how long an operator must have lived to be started again: one that ends at once does so again.
const leastLife = 5 * time.Second

// restartOperator starts an operator that has ended again, as its Deployment would: who kills it sees that nothing is
// lost.
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
