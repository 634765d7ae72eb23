module example.com/vulnerable

go 1.26.0
