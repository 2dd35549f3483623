.PHONY: $(MAKECMDGOALS) build
build $(filter-out build,$(MAKECMDGOALS)):
	@./dev $@
